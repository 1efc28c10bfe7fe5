//! Groups a conversation into turns, for protocols with alternating sides: the user has the first
//! turn, and results of calls open the user's.
//!
//! Knows only the names that it is given.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::message::Message;

/// What the caller says where a protocol wants words of the caller and there are none.
const FILLER: &str = "Continue.";

const CALLER: &str = "user";

/// An encoded part of what is said.
type Part = Box<RawValue>;

/// Turns in the making.
#[derive(Debug)]
pub(super) struct Turns {
    /// What the protocol calls the model's side.
    model: &'static str,
    /// Encodes words.
    text: fn(&str) -> Option<Part>,
    said: Vec<Turn>,
}

/// What one side says before the other does.
#[derive(Debug, Serialize)]
pub(super) struct Turn {
    /// The side.
    pub(super) role: &'static str,
    /// What it says, never nothing.
    pub(super) content: Vec<Part>,
    /// How many parts at the beginning are results.
    #[serde(skip)]
    results: usize,
}

impl Turns {
    /// Begins a conversation with what the protocol calls the model's side and how it encodes words.
    pub(super) fn new(model: &'static str, text: fn(&str) -> Option<Part>) -> Self {
        Self {
            model,
            text,
            said: Vec::new(),
        }
    }

    /// Tells whether nobody has said anything yet.
    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Adds what the caller says.
    pub(super) fn caller_says(&mut self, said: impl IntoIterator<Item = Part>) {
        self.say(CALLER, said);
    }

    /// Adds what the model says.
    pub(super) fn model_says(&mut self, said: impl IntoIterator<Item = Part>) {
        self.say(self.model, said);
    }

    /// Adds results of calls to the caller's turn, behind the results that are there and before all else.
    pub(super) fn add_results(&mut self, results: impl IntoIterator<Item = Part>) {
        let results: Vec<_> = results.into_iter().collect();
        if results.is_empty() {
            return;
        }
        let turn = self.turn(CALLER);
        let place = turn.results;
        turn.results += results.len();
        turn.content.splice(place..place, results);
    }

    /// Adds instructions in the middle of the conversation, which the protocols know as words of the caller only.
    pub(super) fn instruct(&mut self, message: &Message) {
        let text = message.joined_text();
        let text = text.trim();
        if !text.is_empty() {
            self.caller_says((self.text)(&format!("<system>\n{text}\n</system>")));
        }
    }

    /// Gives the caller the first turn.
    pub(super) fn begin_with_caller(&mut self) {
        if self.said.first().is_none_or(|turn| turn.role != CALLER) {
            let mut first = Turn::new(CALLER);
            first.content.extend((self.text)(FILLER));
            self.said.insert(0, first);
        }
    }

    /// Gives the caller the last turn.
    pub(super) fn end_with_caller(&mut self) {
        if self.said.last().is_some_and(|turn| turn.role == self.model) {
            self.caller_says((self.text)(FILLER));
        }
    }

    /// Returns the turns in the order in which they are said.
    pub(super) fn into_turns(self) -> Vec<Turn> {
        self.said
    }

    fn say(&mut self, role: &'static str, said: impl IntoIterator<Item = Part>) {
        let mut said = said.into_iter().peekable();
        if said.peek().is_some() {
            self.turn(role).content.extend(said);
        }
    }

    /// Returns the turn that the next words of the role belong to.
    fn turn(&mut self, role: &'static str) -> &mut Turn {
        if self.said.last().is_none_or(|turn| turn.role != role) {
            self.said.push(Turn::new(role));
        }
        let last = self.said.len() - 1;
        &mut self.said[last]
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
