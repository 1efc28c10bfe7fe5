//! Groups a conversation into turns, for protocols with alternating sides. The user has the first
//! turn. Results of calls come first in a user's turn.
//!
//! Knows only the names that its caller provides.

use serde::Serialize;

use super::encode::{Part, is_visible, raw, text_or_refusal};
use crate::json::Value;
use crate::message::{ContentPart, Message, Role, ToolResult};

/// The text of the caller if a protocol requires one and none exists.
const FILLER: &str = "Continue.";

const CALLER: &str = "user";

/// Encodes messages for a protocol with turns. Data of a provider is sent back only to that
/// provider.
pub(super) trait MessageEncoder {
    /// The protocol's name for the model's side.
    const MODEL: &'static str;

    /// Encodes words.
    fn text(words: &str) -> Option<Part>;

    /// Encodes a picture or a file; `None` for any other part.
    fn media(&mut self, part: &ContentPart) -> Option<Value>;

    /// Encodes a message of the model.
    fn model_parts(&mut self, message: &Message) -> Vec<Part>;

    /// Encodes a result, and separately the content that a result can't hold.
    fn result(&mut self, result: &ToolResult) -> (Option<Part>, Vec<Part>);

    /// Encodes a message of the caller, without results of calls. Omits blank text, which the
    /// protocols reject.
    fn caller_parts(&mut self, message: &Message) -> Vec<Part> {
        self.visible_parts(&message.content, text_or_refusal)
    }

    /// Encodes media, and the words of parts that have some, without blank text.
    fn visible_parts(&mut self, content: &[ContentPart], words: fn(&ContentPart) -> Option<&str>) -> Vec<Part> {
        let parts = content.iter().filter_map(|part| match words(part) {
            Some(text) => is_visible(text).then(|| Self::text(text))?,
            None => raw(&self.media(part)?),
        });
        parts.collect()
    }
}

/// The messages of a request.
#[derive(Debug)]
pub(super) struct Conversation {
    /// Instructions at the beginning of the conversation.
    pub(super) system: Vec<Part>,
    /// The turns.
    pub(super) turns: Vec<Turn>,
}

impl Conversation {
    /// Groups the messages. The caller has the first turn and, if requested, the last one.
    pub(super) fn of<'a, E: MessageEncoder>(
        messages: impl Iterator<Item = &'a Message>,
        encoder: &mut E,
        ends_with_caller: bool,
    ) -> Self {
        let mut conversation = Self {
            system: Vec::new(),
            turns: Vec::new(),
        };
        for message in messages {
            conversation.add_message(message, encoder);
        }
        let turns = &mut conversation.turns;
        if turns.first().is_none_or(|turn| turn.role != CALLER) {
            let mut first = Turn::new(CALLER);
            first.content.extend(E::text(FILLER));
            turns.insert(0, first);
        }
        if ends_with_caller && turns.last().is_some_and(|turn| turn.role == E::MODEL) {
            conversation.add_parts(CALLER, E::text(FILLER));
        }
        conversation
    }

    fn add_message<E: MessageEncoder>(&mut self, message: &Message, encoder: &mut E) {
        for result in message.tool_results() {
            let (result, others) = encoder.result(result);
            self.add_result(result);
            self.add_parts(CALLER, others);
        }
        match message.role {
            Role::System if self.turns.is_empty() => self.system.extend(encoder.caller_parts(message)),
            Role::System => self.instruct(message, E::text),
            Role::User | Role::Tool => self.add_parts(CALLER, encoder.caller_parts(message)),
            Role::Assistant => self.add_parts(E::MODEL, encoder.model_parts(message)),
        }
    }

    /// Adds a result to the caller's turn, after earlier results and before other parts.
    fn add_result(&mut self, result: Option<Part>) {
        if let Some(result) = result {
            let turn = self.turn(CALLER);
            turn.content.insert(turn.results, result);
            turn.results += 1;
        }
    }

    /// Adds instructions in the middle of the conversation. The protocols support them only as text
    /// of the caller.
    fn instruct(&mut self, message: &Message, encode: fn(&str) -> Option<Part>) {
        let text = message.joined_text();
        let text = text.trim();
        if !text.is_empty() {
            self.add_parts(CALLER, encode(&format!("<system>\n{text}\n</system>")));
        }
    }

    fn add_parts(&mut self, role: &'static str, parts: impl IntoIterator<Item = Part>) {
        let mut parts = parts.into_iter().peekable();
        if parts.peek().is_some() {
            self.turn(role).content.extend(parts);
        }
    }

    /// Returns the turn for the next parts of the role.
    fn turn(&mut self, role: &'static str) -> &mut Turn {
        if self.turns.last().is_none_or(|turn| turn.role != role) {
            self.turns.push(Turn::new(role));
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }
}

/// The parts of one side until the other side follows.
#[derive(Debug, Serialize)]
pub(super) struct Turn {
    /// The side.
    pub(super) role: &'static str,
    /// Its parts, never none.
    pub(super) content: Vec<Part>,
    /// How many parts at the beginning are results.
    #[serde(skip)]
    results: usize,
}

impl Turn {
    fn new(role: &'static str) -> Self {
        Self {
            role,
            content: Vec::new(),
            results: 0,
        }
    }
}
