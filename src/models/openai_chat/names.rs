//! Names and ids of calls as servers accept them. Models invent names that no tool has and that no request may hold; what is stored
//! keeps them, only the wire does not.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::ids::MessageId;
use crate::message::{ToolCall, ToolResult};

/// The longest name of a tool, in characters.
const MAX_NAME: usize = 64;

/// Returns the name with what servers refuse replaced; each name that a tool can have stays as it is.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() {
        Cow::Borrowed("_")
    } else if name.len() <= MAX_NAME && name.chars().all(plain) {
        Cow::Borrowed(name)
    } else {
        let fitting = name.chars().map(|c| if plain(c) { c } else { '_' });
        Cow::Owned(fitting.take(MAX_NAME).collect())
    }
}

/// Gives ids to calls without one, the same in each request, and to their results.
#[derive(Debug, Default)]
pub(super) struct WireIds {
    /// Ids that were given to calls whose results have not come yet.
    open: VecDeque<String>,
    given: usize,
}

impl WireIds {
    /// Returns the id of a call of the message.
    pub(super) fn of_call<'a>(&mut self, message: MessageId, call: &'a ToolCall) -> Cow<'a, str> {
        if !call.id.is_empty() {
            return Cow::Borrowed(&call.id);
        }
        let id = format!("call_{}_{}", message.as_uuid().simple(), self.given);
        self.given += 1;
        self.open.push_back(id.clone());
        Cow::Owned(id)
    }

    /// Returns the id of the call that the result belongs to: results come in the order of their calls.
    pub(super) fn of_result<'a>(&mut self, result: &'a ToolResult) -> Cow<'a, str> {
        if !result.call_id.is_empty() {
            return Cow::Borrowed(&result.call_id);
        }
        Cow::Owned(self.open.pop_front().unwrap_or_else(|| "_".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_fitting_names_stay() {
        let long = "n".repeat(70);
        for (name, sent) in [
            ("calculator", "calculator"),
            ("a-B_9", "a-B_9"),
            ("multi_tool_use.parallel", "multi_tool_use_parallel"),
            ("größe ", "gr__e_"),
            ("", "_"),
            (&long, &long[..64]),
            (&long[..64], &long[..64]),
        ] {
            assert_eq!(tool_name(name), sent);
        }
    }
}
