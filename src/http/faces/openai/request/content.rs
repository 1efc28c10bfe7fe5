//! The parts of messages and of tool results, in the forms of both protocols.

use serde::Deserialize;

use super::fields::{decode, unsupported};
use crate::http::input::{InputPart, check_part};
use crate::http::problem::Problem;
use values::json::Value;
use values::message::{ContentPart, MediaSource, Role};

/// A part of a message. Keys that a client sends back from a response, such as `annotations`, have
/// no effect.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    #[serde(alias = "input_text", alias = "output_text")]
    Text {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    InputImage {
        image_url: Option<String>,
        file_id: Option<String>,
        detail: Option<String>,
    },
    InputFile(FilePart),
    /// An image of chat completions.
    ImageUrl {
        image_url: ImageUrl,
    },
    /// A file of chat completions.
    File {
        file: FilePart,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct ImageUrl {
    url: String,
    detail: Option<String>,
}

#[derive(Debug, Deserialize)]
struct FilePart {
    file_data: Option<String>,
    file_url: Option<String>,
    file_id: Option<String>,
    filename: Option<String>,
}

/// Reads the content of a message: a text or parts. Empty texts are left out.
pub(super) fn read_content(value: Value, role: Role, pointer: &str) -> Result<Vec<ContentPart>, Problem> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) if text.is_empty() => Ok(Vec::new()),
        Value::String(text) => Ok(vec![ContentPart::text(text)]),
        Value::Array(parts) => {
            let parts = parts.into_iter().enumerate();
            let parts = parts.map(|(index, part)| read_part(part, role, &format!("{pointer}/{index}")));
            parts.filter_map(Result::transpose).collect()
        }
        _ => Err(Problem::invalid_field(
            pointer,
            "neither a string nor a list of content parts",
        )),
    }
}

/// Reads the output of a tool: a text or parts. It may be empty.
pub(super) fn read_output(value: Value, pointer: &str) -> Result<Vec<ContentPart>, Problem> {
    let mut content = read_content(value, Role::User, pointer)?;
    if content.is_empty() {
        content.push(ContentPart::text(""));
    }
    Ok(content)
}

fn read_part(value: Value, role: Role, pointer: &str) -> Result<Option<ContentPart>, Problem> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let part = match decode(value, pointer)? {
        Part::Text { text } | Part::Refusal { refusal: text } if text.is_empty() => return Ok(None),
        Part::Text { text } => InputPart::Text { text },
        Part::Refusal { refusal } => InputPart::Refusal { text: refusal },
        Part::InputImage {
            image_url,
            file_id,
            detail,
        } => InputPart::Image {
            source: source(image_url, file_id.is_some(), "image_url", pointer)?,
            detail,
        },
        Part::ImageUrl { image_url } => InputPart::Image {
            source: MediaSource::Url { url: image_url.url },
            detail: image_url.detail,
        },
        Part::InputFile(file) | Part::File { file } => InputPart::Document {
            source: source(
                file.file_data.or(file.file_url),
                file.file_id.is_some(),
                "file_data",
                pointer,
            )?,
            name: file.filename,
        },
        Part::Other => {
            let words = format!("content of the type {kind:?} is not supported");
            return Err(unsupported(format!("{pointer}/type"), words));
        }
    };
    check_part(part, role, pointer).map(Some)
}

/// Returns where the bytes are. A `data:` URL becomes bytes when the part is checked.
fn source(url: Option<String>, has_file_id: bool, field: &str, pointer: &str) -> Result<MediaSource, Problem> {
    match url {
        Some(url) => Ok(MediaSource::Url { url }),
        None if has_file_id => {
            let words = "the service stores no uploaded files: send the contents as a data: URL, or a URL";
            Err(unsupported(format!("{pointer}/file_id"), words))
        }
        None => Err(Problem::invalid_field(pointer, format!("missing field `{field}`"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::ProblemCode;

    #[test]
    fn parts_of_both_protocols_become_the_same_content() {
        let url = "data:image/png;base64,aGk=";
        let image = json!({"type": "image", "source": {"kind": "base64", "media_type": "image/png", "data": "aGk="},
            "detail": "low"});
        for (part, expected) in [
            (
                json!({"type": "input_text", "text": "a"}),
                json!({"type": "text", "text": "a"}),
            ),
            (
                json!({"type": "text", "text": "a", "x": 1}),
                json!({"type": "text", "text": "a"}),
            ),
            (
                json!({"type": "input_image", "image_url": url, "detail": "low"}),
                image.clone(),
            ),
            (
                json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}}),
                image,
            ),
            (
                json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"}}),
                json!({"type": "document", "source": {"kind": "base64", "media_type": "application/pdf",
                    "data": "aGk="}, "name": "a.pdf"}),
            ),
        ] {
            let content = read_content(json!([part]), Role::User, "/input/0/content").unwrap();
            assert_eq!(serde_json::to_value(content).unwrap(), json!([expected]), "{part}");
        }
        assert_eq!(
            read_content(
                json!([{"type": "output_text", "text": "", "annotations": []}]),
                Role::Assistant,
                ""
            )
            .unwrap(),
            []
        );
    }

    #[test]
    fn other_parts_are_refused_by_name() {
        for (part, code, pointer) in [
            (
                json!({"type": "input_audio", "data": ""}),
                ProblemCode::UnsupportedParameter,
                "/0/type",
            ),
            (
                json!({"type": "input_image", "file_id": "f"}),
                ProblemCode::UnsupportedParameter,
                "/0/file_id",
            ),
            (json!({"type": "input_image"}), ProblemCode::InvalidField, "/0"),
            (
                json!({"type": "input_text", "text": 1}),
                ProblemCode::InvalidField,
                "/0",
            ),
            (json!({"text": "a"}), ProblemCode::MissingField, "/0/type"),
        ] {
            let problem = read_content(json!([part]), Role::User, "").unwrap_err();
            assert_eq!(problem.code(), code, "{part}");
            assert_eq!(problem.first_error().unwrap().pointer, pointer, "{part}");
        }
    }
}
