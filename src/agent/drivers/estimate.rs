//! Guesses what a call used where nobody counts: by size, so that budgets hold with every server.

use crate::agent::ports::ModelRequest;
use crate::message::ContentPart;
use crate::usage::Usage;

/// Bytes of text that count as one token.
const BYTES_PER_TOKEN: u64 = 4;

/// Returns the usage of a request and an answer of so many bytes.
pub fn estimated_usage(request_bytes: u64, answer_bytes: u64) -> Usage {
    let input_tokens = estimated_tokens(request_bytes);
    let output_tokens = estimated_tokens(answer_bytes);
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
        ..Usage::default()
    }
}

/// Returns how many tokens a text of so many bytes is about.
pub fn estimated_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Returns the size of the words of a request; its tools are not counted.
pub fn request_bytes(request: &ModelRequest) -> u64 {
    let messages = request.messages.iter();
    let said: u64 = messages.map(|message| content_bytes(&message.content)).sum();
    said + request.system.len() as u64
}

/// Returns the size of the words of a content; pictures and documents, whose tokens depend on no size, are not counted.
pub fn content_bytes(content: &[ContentPart]) -> u64 {
    let part = |part: &ContentPart| match part {
        ContentPart::Text(part) => part.text.len() as u64,
        ContentPart::Reasoning(part) => part.text.len() as u64,
        ContentPart::Refusal { text } => text.len() as u64,
        ContentPart::ToolCall(call) => (call.name.len() + call.arguments.len()) as u64,
        ContentPart::ToolResult(result) => content_bytes(&result.content),
        _ => 0,
    };
    content.iter().map(part).sum()
}
