//! Estimates the usage of a model call if the server does not count it, and the least usage that a
//! call can have.
//!
//! The estimates use the size of the text, so budgets work with every server.

use crate::ports::ModelRequest;
use values::message::{ContentPart, MediaSource, Message, is_text_type};
use values::usage::Usage;

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
pub(crate) fn estimated_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Estimates the tokens of a message.
pub(crate) fn message_tokens(message: &Message) -> u64 {
    estimated_tokens(content_bytes(&message.content))
}

/// Returns the fewest tokens of a text with this number of characters, as counted by
/// [`chars_at_least`].
pub(crate) fn least_tokens(chars: u64) -> u64 {
    chars / MAX_CHARS_PER_TOKEN
}

/// Counts the characters of a text. A sequence of the same character counts once, since one token
/// can be a whole line of blanks or dashes.
pub(crate) fn chars_at_least(text: &str) -> u64 {
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
pub(crate) fn least_input_tokens(request: &ModelRequest) -> u64 {
    let message_chars = request.messages.total(|message| chars_of_content(&message.content));
    let tools = request.tools.iter();
    let tool_chars: u64 = tools
        .map(|tool| chars_at_least(&tool.name) + chars_at_least(&tool.description))
        .sum();
    least_tokens(message_chars + tool_chars + chars_at_least(&request.system))
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
    let message_bytes = request.messages.total(|message| content_bytes(&message.content));
    message_bytes + request.system.len() as u64
}

/// The bytes of text that count as many tokens as a picture: 1,600 tokens, as for a large one with
/// most providers.
const PICTURE_BYTES: u64 = 6_400;
/// How many bytes of a file's base64 count as one byte of text, unless the file is text. A page of
/// a PDF has 20 to 50 KB and 1,500 to 3,000 tokens.
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
        ContentPart::Document(part) => file_bytes(&part.source),
        _ => 0,
    };
    content.iter().map(part).sum()
}

fn file_bytes(source: &MediaSource) -> u64 {
    match source {
        MediaSource::Base64 { media_type, data } if is_text_type(media_type) => data.len() as u64 / 4 * 3,
        // An address can hold the data.
        MediaSource::Base64 { data, .. } | MediaSource::Url { url: data } => {
            PICTURE_BYTES.max(data.len() as u64 / FILE_BYTES_PER_BYTE)
        }
        MediaSource::ProviderFile { .. } => PICTURE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::clock::Timestamp;
    use values::ids::{MessageId, UuidV7Source};
    use values::message::{DocumentPart, ImagePart, Role, ToolResult};

    /// Returns the tokens of a message with these parts and a text of two tokens.
    fn tokens_with(mut content: Vec<ContentPart>) -> u64 {
        content.push(ContentPart::text("12345678"));
        let id = MessageId::generate(&UuidV7Source);
        message_tokens(&Message::new(id, Role::User, content, Timestamp::UNIX_EPOCH))
    }

    fn inline(media_type: &str, bytes: usize) -> MediaSource {
        MediaSource::Base64 {
            media_type: media_type.to_owned(),
            data: "AAAA".repeat(bytes / 3),
        }
    }

    fn at(url: &str) -> MediaSource {
        MediaSource::Url { url: url.to_owned() }
    }

    fn sources() -> [MediaSource; 5] {
        let (provider, file_id) = ("p".to_owned(), "f".to_owned());
        [
            MediaSource::ProviderFile { provider, file_id },
            at("https://files.example.org/a"),
            at(&format!("data:application/pdf;base64,{}", "AAAA".repeat(100_000))),
            inline("application/pdf", 3_000),
            inline("application/pdf", 300_000),
        ]
    }

    fn picture(source: MediaSource) -> ContentPart {
        ContentPart::Image(ImagePart { source, detail: None })
    }

    fn file(source: MediaSource) -> ContentPart {
        ContentPart::Document(DocumentPart { source, name: None })
    }

    fn result(part: ContentPart) -> ContentPart {
        ContentPart::ToolResult(ToolResult {
            call_id: "c".to_owned(),
            name: "read_file".to_owned(),
            content: vec![part],
            is_error: false,
        })
    }

    #[test]
    fn a_picture_counts_as_a_large_one_and_a_file_also_by_its_size() {
        assert_eq!(tokens_with(Vec::new()), 2);
        let pictures = [1_602; 5];
        assert_eq!(sources().map(|source| tokens_with(vec![picture(source)])), pictures);
        assert_eq!(
            sources().map(|source| tokens_with(vec![result(picture(source))])),
            pictures
        );
        let files = [1_602, 1_602, 12_503, 1_602, 12_502];
        assert_eq!(sources().map(|source| tokens_with(vec![file(source)])), files);
        assert_eq!(sources().map(|source| tokens_with(vec![result(file(source))])), files);
        assert_eq!(tokens_with(sources().map(picture).to_vec()), 2 + 5 * 1_600);
    }

    #[test]
    fn a_file_of_text_counts_as_its_text() {
        for (media_type, bytes, tokens) in [
            ("text/plain", 12, 3),
            ("text/csv; charset=utf-8", 300_000, 75_000),
            ("application/json", 300_000, 75_000),
        ] {
            let text = tokens_with(vec![file(inline(media_type, bytes))]);
            assert_eq!(text, 2 + tokens, "{media_type}");
        }
    }

    #[test]
    fn a_page_of_a_pdf_counts_as_many_tokens_as_it_has() {
        for bytes in [20_000, 50_000] {
            let tokens = tokens_with(vec![file(inline("application/pdf", bytes))]);
            assert!((1_500..=3_000).contains(&tokens), "{tokens} tokens of {bytes} bytes");
        }
    }
}
