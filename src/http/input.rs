//! The input of a run on the wire: a text, content parts or messages. Strict, since a history is
//! permanent.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::checks::{check_metadata, check_section};
use super::codes::ProblemCode;
use super::json_body::decode_part;
use super::problem::Problem;
use crate::run::InputMessage;
use values::json::Object;
use values::message::{
    ContentPart, DocumentPart, ImagePart, MediaSource, ReasoningPart, Role, Section, ToolCall, ToolResult,
};

const POINTER: &str = "/input";
const MAX_NAME: usize = 64;
/// The longest name of a provider, and the longest id of a file there, in bytes.
const MAX_FILE_NAME: usize = 256;
const FILE_NAME_RULE: &str = "not 1 to 256 bytes without blanks";

/// A text, content parts of one user message, or messages.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "describes the form alone; decoding by hand gives each error its place"
)]
pub(super) enum RunInput {
    /// The text of one user message.
    Text(InputText),
    /// The parts of one user message.
    Parts(InputParts),
    /// Messages, oldest first; tool calls among them have exactly one result each.
    Messages(InputMessages),
}

/// A text that is not empty.
#[derive(Debug, Serialize, ToSchema)]
#[schema(value_type = String, min_length = 1)]
pub(super) struct InputText(String);

/// At least one part.
#[derive(Debug, Serialize, ToSchema)]
#[schema(value_type = Vec<InputPart>, min_items = 1)]
pub(super) struct InputParts(Vec<InputPart>);

/// At least one message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(value_type = Vec<InputWireMessage>, min_items = 1)]
pub(super) struct InputMessages(Vec<InputWireMessage>);

/// A message of the input.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = InputMessage)]
#[serde(deny_unknown_fields)]
pub(super) struct InputWireMessage {
    /// The author.
    role: Role,
    /// The speaker's name, where several share a role.
    #[schema(min_length = 1, max_length = 64)]
    name: Option<String>,
    /// A text, or parts: tool calls only of the assistant, tool results only of tools.
    #[schema(value_type = InputContent)]
    content: Box<RawValue>,
    /// The section of the message store; by default `messages`, the conversation itself.
    #[serde(default)]
    section: Section,
    /// Key-value pairs of the caller.
    metadata: Option<Object>,
}

/// The content of a message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "describes the form alone; decoding by hand gives each error its place"
)]
pub(super) enum InputContent {
    /// One text.
    Text(InputText),
    /// Parts, in order.
    Parts(InputParts),
}

/// A part of a message of the input.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum InputPart {
    /// Words.
    Text {
        /// The words.
        #[schema(min_length = 1)]
        text: String,
    },
    /// A picture.
    Image {
        /// Where its bytes are.
        #[serde(with = "InputSource")]
        #[schema(value_type = InputSource)]
        source: MediaSource,
        /// The level of detail for the model, such as `low` or `high`.
        detail: Option<String>,
    },
    /// A file, such as a PDF.
    Document {
        /// Where its bytes are.
        #[serde(with = "InputSource")]
        #[schema(value_type = InputSource)]
        source: MediaSource,
        /// Its name.
        name: Option<String>,
    },
    /// The assistant's reasoning.
    Reasoning {
        /// The words.
        #[schema(min_length = 1)]
        text: String,
    },
    /// A refusal of the assistant.
    Refusal {
        /// The words.
        #[schema(min_length = 1)]
        text: String,
    },
    /// A call that the assistant asked for.
    ToolCall {
        /// Pairs the call with its result.
        #[schema(min_length = 1)]
        id: String,
        /// The tool's name.
        #[schema(min_length = 1)]
        name: String,
        /// The arguments, as the text of a JSON object.
        arguments: String,
    },
    /// The result of a tool.
    ToolResult {
        /// The call that it belongs to.
        call_id: String,
        /// The tool's name.
        name: String,
        /// Texts, images and documents.
        #[schema(no_recursion)]
        content: Vec<InputPart>,
        /// Whether the result is an error.
        #[serde(default)]
        is_error: bool,
    },
}

/// Where the bytes of an image or a document are.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(remote = "MediaSource", tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum InputSource {
    /// At an address that the provider reads.
    Url {
        /// The address: https or http, or a `data:` URL in base64.
        #[schema(pattern = "^(https?://.|[Dd][Aa][Tt][Aa]:.)")]
        url: String,
    },
    /// Here, in base64 (RFC 4648, with padding).
    Base64 {
        /// The IANA media type, such as `image/png`.
        #[schema(pattern = "^[^/]+/.")]
        media_type: String,
        /// The encoded bytes.
        #[schema(pattern = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$")]
        data: String,
    },
    /// Among the files that were uploaded to a provider. Models of other providers get a text that
    /// names the file.
    ProviderFile {
        /// The provider's configured name, such as `openai`.
        #[schema(pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]{1,256}$")]
        provider: String,
        /// The provider's id of the file.
        #[schema(pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]{1,256}$")]
        file_id: String,
    },
}

/// Detects whether a list has parts or messages.
#[derive(Deserialize)]
struct Shape {
    role: Option<serde::de::IgnoredAny>,
}

/// Decodes and checks the input.
pub(super) fn decode_input(raw: &RawValue, max_messages: usize) -> Result<Vec<InputMessage>, Problem> {
    if raw.get().starts_with('"') {
        return Ok(vec![InputMessage::of_user(decode_content(raw, Role::User, POINTER)?)]);
    }
    let items: Vec<&RawValue> = match serde_json::from_str(raw.get()) {
        Ok(items) => items,
        Err(_) => {
            return Err(Problem::invalid_field(
                POINTER,
                "neither a string nor a list of messages or content parts",
            ));
        }
    };
    let has_role = |item: &RawValue| serde_json::from_str::<Shape>(item.get()).is_ok_and(|shape| shape.role.is_some());
    let is_message = |item: &&RawValue| item.get().starts_with('{') && has_role(item);
    if !items.iter().any(is_message) {
        return Ok(vec![InputMessage::of_user(decode_content(raw, Role::User, POINTER)?)]);
    }
    if items.len() > max_messages {
        let words = format!("{} messages, and at most {max_messages} are allowed", items.len());
        return Err(Problem::of_field(ProblemCode::TooManyMessages, POINTER, words));
    }
    items
        .iter()
        .enumerate()
        .map(|(index, item)| decode_message(item, &format!("{POINTER}/{index}")))
        .collect()
}

fn decode_message(raw: &RawValue, pointer: &str) -> Result<InputMessage, Problem> {
    if !raw.get().starts_with('{') {
        return Err(Problem::invalid_field(
            pointer,
            "not a message: an object with a role and content",
        ));
    }
    let message: InputWireMessage = decode_part(raw, pointer)?;
    if message
        .name
        .as_ref()
        .is_some_and(|name| name.is_empty() || name.len() > MAX_NAME)
    {
        return Err(Problem::invalid_field(
            format!("{pointer}/name"),
            format!("a name has 1 to {MAX_NAME} bytes"),
        ));
    }
    check_section(&message.section, &format!("{pointer}/section"))?;
    if message.section.is_summary() {
        let words = "summaries are made by the hook `summarisation`, or imported";
        return Err(Problem::invalid_field(format!("{pointer}/section"), words));
    }
    let metadata = message.metadata.unwrap_or_default();
    check_metadata(&metadata, &format!("{pointer}/metadata"))?;
    let content = decode_content(&message.content, message.role, &format!("{pointer}/content"))?;
    Ok(InputMessage {
        role: message.role,
        name: message.name,
        section: message.section,
        content,
        provider_fields: None,
        metadata,
    })
}

/// Checks the content of the result of a tool: texts, images and documents.
pub(super) fn decode_result(parts: Vec<InputPart>, pointer: &str) -> Result<Vec<ContentPart>, Problem> {
    check_parts(parts, Role::User, pointer)
}

fn decode_content(raw: &RawValue, role: Role, pointer: &str) -> Result<Vec<ContentPart>, Problem> {
    let parts: Vec<InputPart> = match raw.get().as_bytes().first() {
        Some(b'"') => {
            let text: String = decode_part(raw, pointer)?;
            let part = check_part(InputPart::Text { text }, role, pointer)?;
            return Ok(vec![part]);
        }
        Some(b'[') => decode_part(raw, pointer)?,
        _ => {
            return Err(Problem::invalid_field(
                pointer,
                "neither a string nor a list of content parts",
            ));
        }
    };
    check_parts(parts, role, pointer)
}

fn check_parts(parts: Vec<InputPart>, role: Role, pointer: &str) -> Result<Vec<ContentPart>, Problem> {
    if parts.is_empty() {
        return Err(Problem::invalid_field(pointer, "there is no content"));
    }
    let placed = parts.into_iter().enumerate();
    placed
        .map(|(index, part)| check_part(part, role, &format!("{pointer}/{index}")))
        .collect()
}

/// Checks a part of a message of this role.
fn check_part(part: InputPart, role: Role, pointer: &str) -> Result<ContentPart, Problem> {
    check_part_with(part, role, pointer, &|field| format!("{pointer}/source/{field}"))
}

/// Checks a part of a message of this role. `source_at` makes the pointer to a field of its source.
pub(super) fn check_part_with(
    part: InputPart,
    role: Role,
    pointer: &str,
    source_at: &dyn Fn(&str) -> String,
) -> Result<ContentPart, Problem> {
    check_role(&part, role).map_err(|words| Problem::invalid_field(pointer, words))?;
    Ok(match part {
        InputPart::Text { text } | InputPart::Reasoning { text } | InputPart::Refusal { text } if text.is_empty() => {
            return Err(Problem::invalid_field(pointer, "the text is empty"));
        }
        InputPart::Text { text } => ContentPart::text(text),
        InputPart::Reasoning { text } => ContentPart::Reasoning(ReasoningPart {
            text,
            ..ReasoningPart::default()
        }),
        InputPart::Refusal { text } => ContentPart::Refusal { text },
        InputPart::Image { source, detail } => ContentPart::Image(ImagePart {
            source: checked_source(source, source_at)?,
            detail,
        }),
        InputPart::Document { source, name } => ContentPart::Document(DocumentPart {
            source: checked_source(source, source_at)?,
            name,
        }),
        InputPart::ToolCall { id, name, .. } if id.is_empty() || name.is_empty() => {
            return Err(Problem::invalid_field(pointer, "a tool call needs an id and a name"));
        }
        InputPart::ToolCall { id, name, arguments } => ContentPart::ToolCall(ToolCall {
            id,
            name,
            arguments,
            signature: None,
        }),
        InputPart::ToolResult {
            call_id,
            name,
            content,
            is_error,
        } => {
            let parts = content.into_iter().enumerate();
            // A result has the same content as a user message: no calls and no results.
            let content =
                parts.map(|(index, part)| check_part(part, Role::User, &format!("{pointer}/content/{index}")));
            ContentPart::ToolResult(ToolResult {
                call_id,
                name,
                content: content.collect::<Result<_, _>>()?,
                is_error,
            })
        }
    })
}

fn check_role(part: &InputPart, role: Role) -> Result<(), &'static str> {
    let fits = match part {
        InputPart::Text { .. } => role != Role::Tool,
        InputPart::Image { .. } | InputPart::Document { .. } => role == Role::User,
        InputPart::Reasoning { .. } | InputPart::Refusal { .. } | InputPart::ToolCall { .. } => role == Role::Assistant,
        InputPart::ToolResult { .. } => role == Role::Tool,
    };
    let rule = "images and documents belong to user messages, reasoning, refusals and tool calls to assistant messages, and tool messages hold tool results alone";
    if fits { Ok(()) } else { Err(rule) }
}

/// Checks a source. The bytes of a `data:` URL become bytes in base64.
fn checked_source(source: MediaSource, source_at: &dyn Fn(&str) -> String) -> Result<MediaSource, Problem> {
    let source = source.inlined();
    let (field, rule) = match &source {
        MediaSource::Url { url } if !is_web_address(url) => {
            ("url", "neither an https or http address nor a data: URL in base64")
        }
        MediaSource::Base64 { media_type, .. } if !is_media_type(media_type) => {
            ("media_type", "not a media type such as image/png")
        }
        MediaSource::Base64 { data, .. } if !is_base64(data) => ("data", "not base64 with padding"),
        MediaSource::ProviderFile { provider, .. } if !is_file_name(provider) => ("provider", FILE_NAME_RULE),
        MediaSource::ProviderFile { file_id, .. } if !is_file_name(file_id) => ("file_id", FILE_NAME_RULE),
        _ => return Ok(source),
    };
    Err(Problem::invalid_field(source_at(field), rule))
}

fn is_web_address(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty())
}

fn is_media_type(text: &str) -> bool {
    let parts = text.split_once('/');
    parts.is_some_and(|(kind, subtype)| !kind.is_empty() && !subtype.is_empty())
}

fn is_base64(data: &str) -> bool {
    let digits = data
        .strip_suffix("==")
        .or_else(|| data.strip_suffix('='))
        .unwrap_or(data);
    let allowed = |c: u8| c.is_ascii_alphanumeric() || c == b'+' || c == b'/';
    !digits.is_empty() && data.len().is_multiple_of(4) && digits.bytes().all(allowed)
}

/// Returns whether a text can be the id of a file at a provider, or the name of a provider.
fn is_file_name(text: &str) -> bool {
    let is_plain = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    is_plain && (1..=MAX_FILE_NAME).contains(&text.len())
}
