//! The text of a completion, which arrives in pieces.

use agent::ports::ModelEvent;
use values::message::{ContentPart, ReasoningPart, TextPart};

/// Returns the part of a text that is new. `left` is the text so far that a whole message, after
/// its pieces, has not repeated yet.
pub(super) fn unsaid(left: &mut String, piece: String) -> String {
    let so_far = std::mem::take(left);
    if let Some(rest) = so_far.strip_prefix(&piece) {
        rest.clone_into(left);
        return String::new();
    }
    match piece.strip_prefix(&so_far) {
        Some(rest) => rest.to_owned(),
        // The message also has the reasoning, or other blanks.
        None if !so_far.trim().is_empty() && piece.trim().ends_with(so_far.trim()) => String::new(),
        None => piece,
    }
}

/// The kind of a delta's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeltaKind {
    /// Text of the completion.
    Text,
    /// Reasoning.
    Reasoning,
    /// A refusal.
    Refusal,
}

impl DeltaKind {
    /// Returns the event of a further piece.
    pub(super) fn event(self, text: String) -> ModelEvent {
        match self {
            Self::Text => ModelEvent::TextDelta { text },
            Self::Reasoning => ModelEvent::ReasoningDelta { text },
            Self::Refusal => ModelEvent::RefusalDelta { text },
        }
    }

    /// Returns a part with this text. A refusal has no signature.
    pub(super) fn part(self, text: String, signature: Option<String>) -> ContentPart {
        match self {
            Self::Text => ContentPart::Text(TextPart {
                text,
                signature,
                ..TextPart::default()
            }),
            Self::Reasoning => ContentPart::Reasoning(ReasoningPart {
                text,
                signature,
                ..ReasoningPart::default()
            }),
            Self::Refusal => ContentPart::Refusal { text },
        }
    }

    /// Returns the text of a part of this kind, to append further pieces. A part with a signature
    /// must not change.
    pub(super) fn open(self, part: &mut ContentPart) -> Option<&mut String> {
        match (self, part) {
            (Self::Text, ContentPart::Text(part)) => part.signature.is_none().then_some(&mut part.text),
            (Self::Reasoning, ContentPart::Reasoning(part)) => part.signature.is_none().then_some(&mut part.text),
            (Self::Refusal, ContentPart::Refusal { text }) => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_pieces_lack_is_new_in_a_whole_message() {
        for (so_far, pieces, expected) in [
            ("Hello", &["Hello"][..], ""),
            ("Hello", &["Hel", "lo"], ""),
            ("Hel", &["Hello"], "lo"),
            ("Hel", &["Hel", "lo"], "lo"),
            ("Hello", &["<think>x</think> Hello "], ""),
            ("Hel", &["lo"], "lo"),
            ("", &["Hello"], "Hello"),
        ] {
            let mut left = so_far.to_owned();
            let new: String = pieces
                .iter()
                .map(|piece| unsaid(&mut left, (*piece).to_owned()))
                .collect();
            assert_eq!(new, expected, "{so_far} {pieces:?}");
        }
    }
}
