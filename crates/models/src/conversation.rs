//! Groups a conversation into turns, for protocols with alternating sides. The user has the first
//! turn. Results of calls come first in a user's turn.
//!
//! Knows only the names that its caller provides.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;

use super::encode::{Items, Part, instruction, is_visible, raw, text_or_refusal};
use values::json::Value;
use values::message::{ContentPart, Message, Role, ToolResult};
use values::session::Fold;

/// The text of the caller if a protocol requires one and none exists.
pub(super) const FILLER: &str = "Continue.";

const CALLER: &str = "user";

/// Encodes messages for a protocol with turns. Data of a provider is sent back only to that
/// provider.
pub(super) trait MessageEncoder: Clone + Send + Sync + 'static {
    /// The protocol's name for the model's side.
    const MODEL: &'static str;
    /// The protocol's name for the parts of a turn.
    const CONTENT: &'static str;

    /// Returns whether the other encoder encodes messages in the same way.
    fn is_like(&self, other: &Self) -> bool;

    /// Reads the next messages before the first of them is encoded.
    fn read_ahead<'a>(&mut self, _messages: impl Iterator<Item = &'a Message>) {}

    /// Returns whether no message after these can change how they and earlier ones are encoded.
    fn settles_with<'a>(&self, _messages: impl Iterator<Item = &'a Message>) -> bool {
        true
    }

    /// Returns about how many bytes of memory the encoder takes.
    fn bytes(&self) -> usize;

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

/// The messages of a request, encoded one after another.
#[derive(Debug, Clone)]
pub(super) struct Conversation<E> {
    /// The encoder of the messages.
    pub(super) encoder: E,
    /// Instructions at the beginning of the conversation.
    pub(super) system: Vec<Part>,
    /// The complete turns.
    turns: Items,
    /// The last turn, to which later messages may add.
    last: Option<Turn>,
}

impl<E: MessageEncoder> Conversation<E> {
    /// Makes a conversation without messages.
    pub(super) fn new(encoder: E) -> Self {
        Self {
            encoder,
            system: Vec::new(),
            turns: Items::default(),
            last: None,
        }
    }

    /// Ends the conversation, and returns its turns. The caller has the first turn and, if
    /// requested, the last one.
    pub(super) fn end(&mut self, ends_with_caller: bool) -> &Items {
        let needs_caller = self
            .last
            .as_ref()
            .is_none_or(|last| ends_with_caller && last.role == E::MODEL);
        if needs_caller {
            self.add_parts(CALLER, E::text(FILLER));
        }
        self.close_turn();
        &self.turns
    }

    fn add_message(&mut self, message: &Message) {
        for result in message.tool_results() {
            let (result, others) = self.encoder.result(result);
            self.add_result(result);
            self.add_parts(CALLER, others);
        }
        match message.role {
            Role::System if self.last.is_none() => {
                let texts = message.content.iter().filter_map(text_or_refusal);
                self.system
                    .extend(texts.filter(|text| is_visible(text)).filter_map(E::text));
            }
            Role::System => self.instruct(message),
            Role::User | Role::Tool => {
                let parts = self.encoder.caller_parts(message);
                self.add_parts(CALLER, parts);
            }
            Role::Assistant => {
                let parts = self.encoder.model_parts(message);
                self.add_parts(E::MODEL, parts);
            }
        }
    }

    /// Adds a result to the caller's turn, after earlier results and before other parts.
    fn add_result(&mut self, result: Option<Part>) {
        if let Some(result) = result {
            let turn = self.turn(CALLER);
            turn.content.insert(turn.results, result.into());
            turn.results += 1;
        }
    }

    /// Adds instructions in the middle of the conversation. The protocols support them only as text
    /// of the caller.
    fn instruct(&mut self, message: &Message) {
        if let Some(text) = instruction(message) {
            self.add_parts(CALLER, E::text(&text));
        }
    }

    fn add_parts(&mut self, role: &'static str, parts: impl IntoIterator<Item = Part>) {
        let mut parts = parts.into_iter().peekable();
        if parts.peek().is_some() {
            self.turn(role).content.extend(parts.map(Arc::from));
        }
    }

    /// Returns the turn for the next parts of the role.
    fn turn(&mut self, role: &'static str) -> &mut Turn {
        if self.last.as_ref().is_none_or(|last| last.role != role) {
            if self.last.is_none() && role != CALLER {
                self.add_parts(CALLER, E::text(FILLER));
            }
            self.close_turn();
        }
        self.last.get_or_insert_with(|| Turn::new(role))
    }

    fn close_turn(&mut self) {
        if let Some(last) = self.last.take() {
            self.turns.push(&last.encoded(E::CONTENT));
        }
    }
}

impl<E: MessageEncoder> Fold for Conversation<E> {
    fn is_like(&self, other: &Self) -> bool {
        self.encoder.is_like(&other.encoder)
    }

    fn settles_with<'a>(&self, messages: impl Iterator<Item = &'a Message>) -> bool {
        self.encoder.settles_with(messages)
    }

    fn extend<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
        self.encoder.read_ahead(messages.clone());
        for message in messages {
            self.add_message(message);
        }
    }

    fn retained(self) -> Self {
        Self {
            turns: self.turns.retained(),
            ..self
        }
    }

    fn bytes(&self) -> usize {
        let last = self.last.iter().flat_map(|last| &last.content);
        let parts = self.system.iter().map(AsRef::as_ref).chain(last.map(AsRef::as_ref));
        self.turns.bytes() + parts.map(|part: &RawValue| part.get().len()).sum::<usize>() + self.encoder.bytes()
    }
}

/// The parts of one side until the other side follows.
#[derive(Debug, Clone)]
struct Turn {
    /// The side.
    role: &'static str,
    /// The parts of the turn.
    content: Vec<Arc<RawValue>>,
    /// The number of parts at the beginning that are results.
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

    /// Returns the turn as it is sent, with this name for its parts.
    fn encoded(&self, content: &'static str) -> EncodedTurn<'_> {
        EncodedTurn { turn: self, content }
    }
}

struct EncodedTurn<'a> {
    turn: &'a Turn,
    content: &'static str,
}

impl Serialize for EncodedTurn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(Some(2))?;
        fields.serialize_entry("role", self.turn.role)?;
        fields.serialize_entry(self.content, &self.turn.content)?;
        fields.end()
    }
}
