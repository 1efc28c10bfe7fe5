//! The text of a completion, which arrives in pieces.

use crate::agent::ports::ModelEvent;
use crate::message::{ContentPart, ReasoningPart, TextPart};

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
