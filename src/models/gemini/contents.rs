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
    /// Instructions at the beginning of the conversation.
    pub(super) system: Vec<Part>,
    /// The turns.
    pub(super) turns: Turns,
}

/// The parts of one side until the other side follows.
#[derive(Debug, Serialize)]
pub(super) struct Content {
    role: &'static str,
    parts: Vec<Part>,
}

impl Contents {
    /// Lays the messages out; see [`parts::model_parts`].
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
            self.turns.add_caller(media);
        }
        match message.role {
            Role::System if self.turns.is_empty() => self.system.extend(parts::caller_parts(message, provider)),
            Role::System => self.turns.instruct(message),
            Role::User | Role::Tool => self.turns.add_caller(parts::caller_parts(message, provider)),
            Role::Assistant => self.turns.add_model(parts::model_parts(message, provider, signed, ids)),
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
