//! Reasons why the pieces of a response form no valid completion.

use super::body::protocol;
use super::retry::AttemptError;

/// A fault of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// There are more calls than this limit.
    TooManyCalls(usize),
    /// There are more parts, citations and values of blocks than this limit.
    TooManyParts(usize),
    /// A call has no name.
    NamelessCall,
    /// A piece of a call's arguments belongs to no call.
    StrayArguments,
    /// Several choices have text.
    Alternatives,
    /// A part is neither text nor anything else that is known.
    Unreadable,
}

impl Fault {
    /// Returns the error. It retains the beginning of the faulty text, unless the text only exceeds
    /// a limit.
    pub(super) fn error(self, text: &str) -> AttemptError {
        match self {
            Self::TooManyCalls(most) => protocol(format!("the response has more than {most} tool calls"), ""),
            Self::TooManyParts(most) => protocol(format!("the response has more than {most} parts"), ""),
            Self::NamelessCall => protocol("a tool call has no name".to_owned(), text),
            Self::Alternatives => protocol("the response has several choices with text".to_owned(), text),
            Self::Unreadable => protocol("the response has content that can't be read".to_owned(), text),
            Self::StrayArguments => protocol("a piece of a tool call belongs to no call".to_owned(), text),
        }
    }
}
