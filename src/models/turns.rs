//! Groups a conversation into turns, for protocols with alternating sides: the user has the first
//! turn, and results of calls open the user's.
//!
//! Knows only the names that it is given.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::message::Message;

/// The text of the caller where a protocol requires one and there is none.
const FILLER: &str = "Continue.";

const CALLER: &str = "user";

/// An encoded part of a message.
type Part = Box<RawValue>;

/// Turns in the making.
#[derive(Debug)]
pub(super) struct Turns {
    /// What the protocol calls the model's side.
    model: &'static str,
    /// Encodes words.
    text: fn(&str) -> Option<Part>,
    list: Vec<Turn>,
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

impl Turns {
    /// Begins a conversation with what the protocol calls the model's side and how it encodes
    /// words.
    pub(super) fn new(model: &'static str, text: fn(&str) -> Option<Part>) -> Self {
        Self {
            model,
            text,
            list: Vec::new(),
        }
    }

    /// Returns whether there is no turn yet.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds parts of the caller.
    pub(super) fn add_caller(&mut self, parts: impl IntoIterator<Item = Part>) {
        self.say(CALLER, parts);
    }

    /// Adds parts of the model.
    pub(super) fn add_model(&mut self, parts: impl IntoIterator<Item = Part>) {
        self.say(self.model, parts);
    }

    /// Adds results of calls to the caller's turn, behind the results that are there and before all
    /// else.
    pub(super) fn add_results(&mut self, results: impl IntoIterator<Item = Part>) {
        let results: Vec<_> = results.into_iter().collect();
        if results.is_empty() {
            return;
        }
        let turn = self.turn(CALLER);
        let position = turn.results;
        turn.results += results.len();
        turn.content.splice(position..position, results);
    }

    /// Adds instructions in the middle of the conversation, which the protocols know as words of
    /// the caller only.
    pub(super) fn instruct(&mut self, message: &Message) {
        let text = message.joined_text();
        let text = text.trim();
        if !text.is_empty() {
            self.add_caller((self.text)(&format!("<system>\n{text}\n</system>")));
        }
    }

    /// Gives the caller the first turn.
    pub(super) fn begin_with_caller(&mut self) {
        if self.list.first().is_none_or(|turn| turn.role != CALLER) {
            let mut first = Turn::new(CALLER);
            first.content.extend((self.text)(FILLER));
            self.list.insert(0, first);
        }
    }

    /// Gives the caller the last turn.
    pub(super) fn end_with_caller(&mut self) {
        if self.list.last().is_some_and(|turn| turn.role == self.model) {
            self.add_caller((self.text)(FILLER));
        }
    }

    /// Returns the turns in order.
    pub(super) fn into_turns(self) -> Vec<Turn> {
        self.list
    }

    fn say(&mut self, role: &'static str, parts: impl IntoIterator<Item = Part>) {
        let mut parts = parts.into_iter().peekable();
        if parts.peek().is_some() {
            self.turn(role).content.extend(parts);
        }
    }

    /// Returns the turn that the next words of the role belong to.
    fn turn(&mut self, role: &'static str) -> &mut Turn {
        if self.list.last().is_none_or(|turn| turn.role != role) {
            self.list.push(Turn::new(role));
        }
        let last = self.list.len() - 1;
        &mut self.list[last]
    }
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
