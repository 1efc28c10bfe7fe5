//! Lays messages out as the protocol wants them: turns alternate, the caller has the first one, and all results of calls stand right
//! after the turn with the calls.

use serde::Serialize;

use super::parts::{self, Part};
use crate::message::{Message, Role};
use crate::models::names::{IdRule, WireIds};

/// What the caller says where the protocol wants words of the caller and there are none.
const FILLER: &str = "Continue.";

const USER: &str = "user";
const MODEL: &str = "model";

/// The messages of a request.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Instructions that stand before all else of the conversation.
    pub(super) system: Vec<Part>,
    /// The turns.
    pub(super) turns: Vec<Turn>,
}

/// What one side says before the other does.
#[derive(Debug, Serialize)]
pub(super) struct Turn {
    role: &'static str,
    parts: Vec<Part>,
    /// How many parts at the beginning are results.
    #[serde(skip)]
    results: usize,
}

impl Contents {
    /// Lays the messages out; see [`parts::answered`].
    pub(super) fn of<'a>(messages: impl Iterator<Item = &'a Message>, provider: &str, signed: bool) -> Self {
        let mut contents = Self::default();
        let mut ids = WireIds::new(IdRule::Any);
        for message in messages {
            contents.push(message, provider, signed, &mut ids);
        }
        if contents.turns.first().is_none_or(|turn| turn.role != USER) {
            contents.turns.insert(0, Turn::new(USER));
            contents.turns[0].parts.extend(parts::text(FILLER));
        }
        if contents.turns.last().is_some_and(|turn| turn.role == MODEL) {
            contents.turn(USER).parts.extend(parts::text(FILLER));
        }
        contents
    }

    fn push(&mut self, message: &Message, provider: &str, signed: bool, ids: &mut WireIds) {
        for result in message.tool_results() {
            let (response, media) = parts::result(result, provider, ids);
            self.turn(USER).push_result(response, media);
        }
        let (role, said) = match message.role {
            Role::System if self.turns.is_empty() => {
                self.system.extend(parts::said(message, provider));
                return;
            }
            Role::System => (USER, instructions(message)),
            Role::User | Role::Tool => (USER, parts::said(message, provider).collect()),
            Role::Assistant => (MODEL, parts::answered(message, provider, signed, ids)),
        };
        if !said.is_empty() {
            self.turn(role).parts.extend(said);
        }
    }

    /// Returns the turn that the next words of the role belong to.
    fn turn(&mut self, role: &'static str) -> &mut Turn {
        if self.turns.last().is_none_or(|turn| turn.role != role) {
            self.turns.push(Turn::new(role));
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }
}

impl Turn {
    fn new(role: &'static str) -> Self {
        Self {
            role,
            parts: Vec::new(),
            results: 0,
        }
    }

    /// Adds a result behind the results that are there and before all else; what it can't hold comes last.
    fn push_result(&mut self, response: Option<Part>, media: Vec<Part>) {
        if let Some(response) = response {
            self.parts.insert(self.results, response);
            self.results += 1;
        }
        self.parts.extend(media);
    }
}

/// Encodes instructions in the middle of a conversation, where the protocol knows the caller's words only.
fn instructions(message: &Message) -> Vec<Part> {
    let text = message.joined_text();
    let text = text.trim();
    let part = (!text.is_empty()).then(|| parts::text(&format!("<system>\n{text}\n</system>")));
    part.flatten().into_iter().collect()
}
