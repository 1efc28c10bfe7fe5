//! Renders a conversation as plain text for the model that summarises it. In plain text, no
//! protocol demands that calls and results are paired.

use crate::model_calls::estimated_tokens;
use values::message::{ContentPart, Message, Role};

/// The most bytes of one part of a message. Of a longer part, the beginning and the end are shown.
const MAX_PART: usize = 16 << 10;

/// Renders the messages in pieces of at most `piece_tokens` tokens. A longer message is a separate
/// piece.
pub(super) fn transcribe(messages: &[&Message], piece_tokens: u64) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for message in messages {
        let text = lines(message);
        match pieces.last_mut() {
            Some(piece) if estimated_tokens((piece.len() + text.len()) as u64) <= piece_tokens => piece.push_str(&text),
            _ => pieces.push(text),
        }
    }
    pieces
}

/// Asks for a summary of the last summary and the piece.
pub(super) fn question(summary: &str, piece: &str) -> String {
    if summary.is_empty() {
        return format!("<conversation>\n{piece}</conversation>");
    }
    format!("<summary>\n{summary}\n</summary>\n\n<conversation>\n{piece}</conversation>")
}

fn lines(message: &Message) -> String {
    let speaker = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let parts = message.content.iter().filter_map(shown);
    parts.map(|part| [speaker, ": ", &part, "\n"].concat()).collect()
}

/// Renders a part. Omits reasoning, since its conclusion is in the text.
fn shown(part: &ContentPart) -> Option<String> {
    match part {
        ContentPart::Text(part) => Some(shortened(&part.text)),
        ContentPart::Refusal { text } => Some(shortened(text)),
        ContentPart::ToolCall(call) => Some(format!("calls {} with {}", call.name, shortened(&call.arguments))),
        ContentPart::ToolResult(result) => {
            let texts: Vec<String> = result.content.iter().filter_map(shown).collect();
            let outcome = if result.is_error { "failed" } else { "answered" };
            Some(format!("{} {outcome}: {}", result.name, texts.join(" ")))
        }
        ContentPart::Image(_) => Some("[an image]".to_owned()),
        ContentPart::Document(part) => Some(format!(
            "[the document {}]",
            part.name.as_deref().unwrap_or("without a name")
        )),
        _ => None,
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= MAX_PART {
        return text.to_owned();
    }
    let half = MAX_PART / 2;
    let (head, tail) = (
        text.floor_char_boundary(half),
        text.ceil_char_boundary(text.len() - half),
    );
    let left_out = tail - head;
    format!("{} [{left_out} bytes are left out] {}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::clock::Timestamp;
    use values::ids::{MessageId, UuidV7Source};
    use values::message::{DocumentPart, ImagePart, MediaSource, ReasoningPart, ToolCall, ToolResult};

    fn message(role: Role, content: Vec<ContentPart>) -> Message {
        Message::new(MessageId::generate(&UuidV7Source), role, content, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_transcript_has_all_messages_and_calls() {
        let call = ContentPart::ToolCall(ToolCall {
            id: "c".to_owned(),
            name: "look_up".to_owned(),
            arguments: r#"{"city":"Bern"}"#.to_owned(),
            signature: None,
        });
        let result = ContentPart::ToolResult(ToolResult {
            call_id: "c".to_owned(),
            name: "look_up".to_owned(),
            content: vec![ContentPart::text("12 degrees")],
            is_error: false,
        });
        let reasoning = ContentPart::Reasoning(ReasoningPart {
            text: "hm".to_owned(),
            ..ReasoningPart::default()
        });
        let failed = ContentPart::ToolResult(ToolResult {
            call_id: "d".to_owned(),
            name: "look_up".to_owned(),
            content: vec![ContentPart::text("no such city")],
            is_error: true,
        });
        let refused = ContentPart::Refusal {
            text: "I may not say.".to_owned(),
        };
        let source = || MediaSource::Url {
            url: "https://example.com/a".to_owned(),
        };
        let document = |name: Option<&str>| {
            ContentPart::Document(DocumentPart {
                source: source(),
                name: name.map(str::to_owned),
            })
        };
        let image = ContentPart::Image(ImagePart {
            source: source(),
            detail: None,
        });
        let files = vec![image, document(Some("a.pdf")), document(None)];
        let messages = [
            message(Role::User, [vec![ContentPart::text("How warm is it?")], files].concat()),
            message(Role::Assistant, vec![reasoning, ContentPart::text("I look."), call]),
            message(Role::Tool, vec![result, failed]),
            message(Role::Assistant, vec![refused]),
        ];
        let all: Vec<&Message> = messages.iter().collect();
        let [piece] = &transcribe(&all, 1_000)[..] else {
            panic!("one piece")
        };
        assert_eq!(
            piece,
            "user: How warm is it?\nuser: [an image]\nuser: [the document a.pdf]\nuser: [the document without a name]\n\
             assistant: I look.\nassistant: calls look_up with {\"city\":\"Bern\"}\n\
             tool: look_up answered: 12 degrees\ntool: look_up failed: no such city\nassistant: I may not say.\n"
        );
        assert_eq!(transcribe(&all, 1).len(), 4, "each message is a piece");
        assert_eq!(transcribe(&[], 1), Vec::<String>::new());
        assert!(question("so far", piece).starts_with("<summary>\nso far\n</summary>\n\n<conversation>\nuser: "));
    }

    #[test]
    fn of_a_long_part_the_beginning_and_the_end_are_written_down() {
        let text = format!("a{}z", "\u{1F980}".repeat(10_000));
        let short = shortened(&text);
        assert!(
            short.len() < MAX_PART + 100 && short.starts_with('a') && short.ends_with('z'),
            "{}",
            short.len()
        );
        assert!(short.contains(" bytes are left out] "));
    }
}
