//! Arranges messages as the protocol demands: turns alternate, the user has the first, and all
//! results follow the turn with their calls.

use serde::Serialize;

use super::parts::{self, Part};
use crate::message::{Message, Role};
use crate::models::names::{IdRule, WireIds};
use crate::models::turns::Turns;

/// The messages of a request.
#[derive(Debug)]
pub(super) struct Contents {
    /// Instructions that stand before all else of the conversation.
    pub(super) system: Vec<Part>,
    /// The turns.
    pub(super) turns: Turns,
}

/// What one side says before the other does.
#[derive(Debug, Serialize)]
pub(super) struct Content {
    role: &'static str,
    parts: Vec<Part>,
}

impl Contents {
    /// Lays the messages out; see [`parts::answered`].
    pub(super) fn of<'a>(messages: impl Iterator<Item = &'a Message>, provider: &str, signed: bool) -> Self {
        let mut contents = Self {
            system: Vec::new(),
            turns: Turns::new("model", parts::text),
        };
        let mut ids = WireIds::new(IdRule::Any);
        for message in messages {
            contents.push(message, provider, signed, &mut ids);
        }
        contents.turns.begin_with_caller();
        contents.turns.end_with_caller();
        contents
    }

    fn push(&mut self, message: &Message, provider: &str, signed: bool, ids: &mut WireIds) {
        for result in message.tool_results() {
            // What a result can't hold comes last.
            let (response, media) = parts::result(result, provider, ids);
            self.turns.add_results(response);
            self.turns.caller_says(media);
        }
        match message.role {
            Role::System if self.turns.is_empty() => self.system.extend(parts::said(message, provider)),
            Role::System => self.turns.instruct(message),
            Role::User | Role::Tool => self.turns.caller_says(parts::said(message, provider)),
            Role::Assistant => self.turns.model_says(parts::answered(message, provider, signed, ids)),
        }
    }
}

impl Content {
    /// Returns the turns as the protocol names what they are made of.
    pub(super) fn of(turns: Turns) -> Vec<Self> {
        let turns = turns.into_turns().into_iter().map(|turn| Self {
            role: turn.role,
            parts: turn.content,
        });
        turns.collect()
    }
}
