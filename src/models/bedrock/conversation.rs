//! Lays messages out as the protocol wants them: turns alternate, the caller has the first and the last one, and results of calls begin
//! theirs.

use std::collections::{BTreeSet, HashSet};

use serde::Serialize;

use super::blocks::{self, Block};
use crate::message::{Message, Role};
use crate::models::names::{IdRule, WireIds};

/// What the caller says where the protocol wants words of the caller and there are none.
const FILLER: &str = "Continue.";
/// The most characters of a file's name.
const NAME_CHARS: usize = 100;

const USER: &str = "user";
const ASSISTANT: &str = "assistant";

/// The messages of a request.
#[derive(Debug)]
pub(super) struct Conversation {
    /// Instructions that stand before all else of the conversation.
    pub(super) system: Vec<Block>,
    /// The turns.
    pub(super) turns: Vec<Turn>,
    /// The tools that were called.
    pub(super) called: BTreeSet<String>,
}

/// What one side says before the other does.
#[derive(Debug, Serialize)]
pub(super) struct Turn {
    role: &'static str,
    content: Vec<Block>,
    /// How many blocks at the beginning are results.
    #[serde(skip)]
    results: usize,
}

/// The names that a request has given so far.
#[derive(Debug)]
pub(super) struct Names {
    /// The ids of calls.
    pub(super) ids: WireIds,
    documents: HashSet<String>,
    called: BTreeSet<String>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            ids: WireIds::new(IdRule::Short),
            documents: HashSet::new(),
            called: BTreeSet::new(),
        }
    }
}

impl Names {
    /// Returns a name that the protocol takes and no other file of the request has.
    pub(super) fn of_document(&mut self, name: Option<&str>) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-()[]".contains(c);
        let name: String = name
            .unwrap_or_default()
            .chars()
            .map(|c| if plain(c) { c } else { ' ' })
            .collect();
        let name: String = name
            .split(' ')
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        let name: String = name.chars().take(NAME_CHARS).collect();
        let name = if name.is_empty() { "document" } else { name.trim() };
        let mut free = name.to_owned();
        let mut number = 2;
        while !self.documents.insert(free.clone()) {
            free = format!("{name} {number}");
            number += 1;
        }
        free
    }

    /// Remembers that a tool was called.
    pub(super) fn called(&mut self, tool: &str) {
        if !self.called.contains(tool) {
            self.called.insert(tool.to_owned());
        }
    }
}

impl Conversation {
    /// Lays the messages out; what belongs to a provider goes back to `provider` alone.
    pub(super) fn of<'a>(messages: impl Iterator<Item = &'a Message>, provider: &str) -> Self {
        let mut names = Names::default();
        let mut conversation = Self {
            system: Vec::new(),
            turns: Vec::new(),
            called: BTreeSet::new(),
        };
        for message in messages {
            conversation.push(message, provider, &mut names);
        }
        if conversation.turns.first().is_none_or(|turn| turn.role != USER) {
            conversation.turns.insert(0, Turn::new(USER));
            conversation.turns[0].content.extend(blocks::text(FILLER));
        }
        if conversation.turns.last().is_some_and(|turn| turn.role == ASSISTANT) {
            conversation.turn(USER).content.extend(blocks::text(FILLER));
        }
        conversation.called = names.called;
        conversation
    }

    fn push(&mut self, message: &Message, provider: &str, names: &mut Names) {
        for result in message.tool_results() {
            let block = blocks::result(result, names);
            self.turn(USER).push_result(block);
        }
        let (role, said) = match message.role {
            Role::System if self.turns.is_empty() => {
                self.system.extend(blocks::said(message, names));
                return;
            }
            Role::System => (USER, instructions(message)),
            Role::User | Role::Tool => (USER, blocks::said(message, names)),
            Role::Assistant => (ASSISTANT, blocks::answered(message, provider, names)),
        };
        if !said.is_empty() {
            self.turn(role).content.extend(said);
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
            content: Vec::new(),
            results: 0,
        }
    }

    /// Adds a result behind the results that are there and before all else.
    fn push_result(&mut self, result: Option<Block>) {
        if let Some(result) = result {
            self.content.insert(self.results, result);
            self.results += 1;
        }
    }
}

/// Encodes instructions in the middle of a conversation, where the protocol knows the caller's words only.
fn instructions(message: &Message) -> Vec<Block> {
    let text = message.joined_text();
    let text = text.trim();
    let block = (!text.is_empty()).then(|| blocks::text(&format!("<system>\n{text}\n</system>")));
    block.flatten().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_that_the_protocol_takes_and_no_two_the_same() {
        let mut names = Names::default();
        for (name, expected) in [
            (None, "document"),
            (Some("a.pdf"), "a pdf"),
            (Some(" a..pdf "), "a pdf 2"),
            (Some("größe_(1)"), "gr e (1)"),
            (Some("日本"), "document 2"),
            (Some("a pdf 2"), "a pdf 2 2"),
        ] {
            assert_eq!(names.of_document(name), expected);
        }
        assert_eq!(names.of_document(Some(&"x".repeat(500))).len(), NAME_CHARS);
    }
}
