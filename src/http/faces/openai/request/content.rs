//! The parts of messages and of tool results, in the forms of both protocols.

use serde::Deserialize;

use crate::http::faces::fields::{decode, missing, type_of, unsupported, wrong_type};
use crate::http::input::{InputPart, check_part_with};
use crate::http::problem::Problem;
use values::json::Value;
use values::message::{ContentPart, MediaSource, Role};

#[derive(Debug, Deserialize)]
struct TextPart {
    text: String,
}

#[derive(Debug, Deserialize)]
struct RefusalPart {
    refusal: String,
}

#[derive(Debug, Deserialize)]
struct ImagePart {
    image_url: Option<String>,
    file_id: Option<String>,
    detail: Option<String>,
}

/// An image of Chat Completions.
#[derive(Debug, Deserialize)]
struct ChatImage {
    image_url: ImageUrl,
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

/// A file of Chat Completions.
#[derive(Debug, Deserialize)]
struct ChatFile {
    file: FilePart,
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
        _ => Err(wrong_type(pointer, "neither a string nor a list of content parts")),
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

/// Reads a part of a message; `None` for one without text. Keys that a client sends back from a
/// response, such as `annotations`, have no effect.
fn read_part(value: Value, role: Role, pointer: &str) -> Result<Option<ContentPart>, Problem> {
    let (part, url) = match type_of(&value, pointer)? {
        "text" | "input_text" | "output_text" => {
            let TextPart { text } = decode(value, pointer)?;
            (InputPart::Text { text }, String::new())
        }
        "refusal" => {
            let RefusalPart { refusal } = decode(value, pointer)?;
            (InputPart::Refusal { text: refusal }, String::new())
        }
        "input_image" => {
            let image: ImagePart = decode(value, pointer)?;
            let source = source(image.image_url, image.file_id.is_some(), "image_url", pointer)?;
            let detail = image.detail;
            (InputPart::Image { source, detail }, format!("{pointer}/image_url"))
        }
        "image_url" => {
            let ChatImage { image_url } = decode(value, pointer)?;
            let source = MediaSource::Url { url: image_url.url };
            let detail = image_url.detail;
            (InputPart::Image { source, detail }, format!("{pointer}/image_url/url"))
        }
        "input_file" => document(decode(value, pointer)?, pointer)?,
        "file" => {
            let ChatFile { file } = decode(value, pointer)?;
            document(file, &format!("{pointer}/file"))?
        }
        kind => {
            let words = format!("content of the type {kind:?} is not supported");
            return Err(unsupported(format!("{pointer}/type"), words));
        }
    };
    match &part {
        InputPart::Text { text } | InputPart::Refusal { text } if text.is_empty() => Ok(None),
        _ => check_part_with(part, role, pointer, &|_| url.clone()).map(Some),
    }
}

/// Reads a file. Returns it with the pointer to its contents or its URL.
fn document(file: FilePart, pointer: &str) -> Result<(InputPart, String), Problem> {
    let has_url = file.file_data.is_none() && file.file_url.is_some();
    let field = if has_url { "file_url" } else { "file_data" };
    let url = file.file_data.or(file.file_url);
    let part = InputPart::Document {
        source: source(url, file.file_id.is_some(), field, pointer)?,
        name: file.filename,
    };
    Ok((part, format!("{pointer}/{field}")))
}

/// Returns where the bytes are. A `data:` URL becomes bytes when the part is checked.
fn source(url: Option<String>, has_file_id: bool, field: &str, pointer: &str) -> Result<MediaSource, Problem> {
    match url {
        Some(url) => Ok(MediaSource::Url { url }),
        None if has_file_id => {
            let words = "the service stores no uploaded files: send the contents as a data: URL, or a URL";
            Err(unsupported(format!("{pointer}/file_id"), words))
        }
        None => Err(missing(pointer, field)),
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
            (
                json!({"type": "file", "file": {"file_id": "f"}}),
                ProblemCode::UnsupportedParameter,
                "/0/file/file_id",
            ),
            (
                json!({"type": "input_image"}),
                ProblemCode::MissingField,
                "/0/image_url",
            ),
            (
                json!({"type": "input_text", "text": 1}),
                ProblemCode::InvalidType,
                "/0/text",
            ),
            (
                json!({"type": "image_url", "image_url": {"url": 1}}),
                ProblemCode::InvalidType,
                "/0/image_url/url",
            ),
            (
                json!({"type": "input_image", "image_url": "ftp://a"}),
                ProblemCode::InvalidField,
                "/0/image_url",
            ),
            (
                json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}),
                ProblemCode::InvalidField,
                "/0/image_url/url",
            ),
            (
                json!({"type": "input_file", "file_url": "a"}),
                ProblemCode::InvalidField,
                "/0/file_url",
            ),
            (
                json!({"type": "file", "file": {"file_data": "a"}}),
                ProblemCode::InvalidField,
                "/0/file/file_data",
            ),
            (json!({"text": "a"}), ProblemCode::MissingField, "/0/type"),
            (json!("a"), ProblemCode::InvalidType, "/0"),
        ] {
            let problem = read_content(json!([part]), Role::User, "").unwrap_err();
            assert_eq!(problem.code(), code, "{part}");
            assert_eq!(problem.first_error().unwrap().pointer, pointer, "{part}");
        }
    }
}
