//! Arranges messages as the protocol demands: turns alternate, the user has the first and the last,
//! and results of calls open theirs.

use std::collections::BTreeSet;

use super::blocks::{self, Block};
use super::names::Names;
use crate::message::{Message, Role};
use crate::models::turns::Turns;

/// The messages of a request.
#[derive(Debug)]
pub(super) struct Conversation {
    /// Instructions at the beginning of the conversation.
    pub(super) system: Vec<Block>,
    /// The turns.
    pub(super) turns: Turns,
    /// The tools that were called.
    pub(super) called: BTreeSet<String>,
}

impl Conversation {
    /// Lays the messages out; what belongs to a provider goes back to `provider` alone.
    pub(super) fn of<'a>(messages: impl Iterator<Item = &'a Message>, provider: &str) -> Self {
        let mut names = Names::default();
        let mut conversation = Self {
            system: Vec::new(),
            turns: Turns::new("assistant", blocks::text),
            called: BTreeSet::new(),
        };
        for message in messages {
            conversation.push(message, provider, &mut names);
        }
        conversation.turns.begin_with_caller();
        conversation.turns.end_with_caller();
        conversation.called = names.into_called();
        conversation
    }

    fn push(&mut self, message: &Message, provider: &str, names: &mut Names) {
        let results = message.tool_results();
        self.turns
            .add_results(results.filter_map(|result| blocks::result(result, names)));
        match message.role {
            Role::System if self.turns.is_empty() => self.system.extend(blocks::caller_blocks(message, names)),
            Role::System => self.turns.instruct(message),
            Role::User | Role::Tool => self.turns.add_caller(blocks::caller_blocks(message, names)),
            Role::Assistant => self.turns.add_model(blocks::model_blocks(message, provider, names)),
        }
    }
}
