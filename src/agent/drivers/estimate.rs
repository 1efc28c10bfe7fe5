//! Estimates the usage of a model call if the server does not count it, and the least usage that a
//! call can have.
//!
//! The estimates use the size of the text, so budgets work with every server.

use crate::agent::ports::ModelRequest;
use crate::message::{ContentPart, MediaSource, Message};
use crate::usage::Usage;

/// Bytes of text that count as one token.
const BYTES_PER_TOKEN: u64 = 4;
/// The most characters of a token on average. Measured with the tokenizers of OpenAI (`o200k_base`,
/// `cl100k_base`), Anthropic, Gemini and Qwen: at most 6.7 in prose of eight languages and 5.9 in
/// code and JSON; the recorded requests have at most 4.8. Only lists of long words have more.
const MAX_CHARS_PER_TOKEN: u64 = 8;

/// Estimates the usage of a request and a completion from their bytes.
pub fn estimated_usage(request_bytes: u64, completion_bytes: u64) -> Usage {
    let input_tokens = estimated_tokens(request_bytes);
    let output_tokens = estimated_tokens(completion_bytes);
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
        ..Usage::default()
    }
}

/// Estimates the tokens of a text from its bytes.
pub fn estimated_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Estimates the tokens of a message.
pub fn message_tokens(message: &Message) -> u64 {
    estimated_tokens(content_bytes(&message.content))
}

/// Returns the fewest tokens of a text with this number of characters, as counted by
/// [`chars_at_least`].
pub(super) fn least_tokens(chars: u64) -> u64 {
    chars / MAX_CHARS_PER_TOKEN
}

/// Counts the characters of a text. A sequence of the same character counts once, since one token
/// can be a whole line of blanks or dashes.
pub(super) fn chars_at_least(text: &str) -> u64 {
    let is_counted = |before: u8, byte: u8| {
        let begins_char = byte & 0xC0 != 0x80;
        begins_char && (byte != before || byte.is_ascii_alphanumeric())
    };
    let bytes = text.as_bytes();
    let after_first = bytes.windows(2).filter(|pair| is_counted(pair[0], pair[1])).count();
    after_first as u64 + u64::from(!bytes.is_empty())
}

/// Returns the fewest tokens that the input of a request can have. Excludes reasoning, media and
/// the schemas of tools: not every provider is sent these, or counts them by their text.
pub(super) fn least_input_tokens(request: &ModelRequest) -> u64 {
    let of_messages = request.messages.total(|message| chars_of_content(&message.content));
    let tools = request.tools.iter();
    let of_tools: u64 = tools
        .map(|tool| chars_at_least(&tool.name) + chars_at_least(&tool.description))
        .sum();
    least_tokens(of_messages + of_tools + chars_at_least(&request.system))
}

fn chars_of_content(content: &[ContentPart]) -> u64 {
    let part = |part: &ContentPart| match part {
        ContentPart::Text(part) => chars_at_least(&part.text),
        ContentPart::ToolCall(call) => chars_at_least(&call.name) + chars_at_least(&call.arguments),
        ContentPart::ToolResult(result) => chars_of_content(&result.content),
        _ => 0,
    };
    content.iter().map(part).sum()
}

/// Returns the bytes of the text in a request, without its tools.
pub fn request_bytes(request: &ModelRequest) -> u64 {
    let of_messages = request.messages.total(|message| content_bytes(&message.content));
    of_messages + request.system.len() as u64
}

/// The bytes of text that count as many tokens as a picture: 1,600, what a large one has with most
/// providers.
const PICTURE_BYTES: u64 = 6_400;
/// How many bytes of a file's base64 count as one byte of text. A page of a PDF has 20 to 50 KB and
/// 1,500 to 3,000 tokens.
const FILE_BYTES_PER_BYTE: u64 = 8;

/// Returns the bytes of the text in content parts. Pictures and files count as text with about as
/// many tokens.
pub fn content_bytes(content: &[ContentPart]) -> u64 {
    let part = |part: &ContentPart| match part {
        ContentPart::Text(part) => part.text.len() as u64,
        ContentPart::Reasoning(part) => part.text.len() as u64,
        ContentPart::Refusal { text } => text.len() as u64,
        ContentPart::ToolCall(call) => (call.name.len() + call.arguments.len()) as u64,
        ContentPart::ToolResult(result) => content_bytes(&result.content),
        ContentPart::Image(_) => PICTURE_BYTES,
        ContentPart::Document(part) => match &part.source {
            MediaSource::Base64 { data, .. } => PICTURE_BYTES.max(data.len() as u64 / FILE_BYTES_PER_BYTE),
            _ => PICTURE_BYTES,
        },
        _ => 0,
    };
    content.iter().map(part).sum()
}
