//! Arranges messages as the protocol demands: turns alternate, the user has the first, and results
//! of calls open theirs.

use super::blocks::{self, Block};
use super::server_tools::ServerTools;
use crate::message::{ContentPart, Message, Role};
use crate::models::names::{IdRule, WireIds};
use crate::models::turns::Turns;

/// The messages of a request.
#[derive(Debug)]
pub(super) struct Conversation {
    /// Instructions at the beginning of the conversation.
    pub(super) system: Vec<Block>,
    /// The turns.
    pub(super) turns: Turns,
}

impl Conversation {
    /// Lays the messages out; what belongs to a provider goes back to `provider` alone.
    pub(super) fn of<'a>(messages: impl Iterator<Item = &'a Message> + Clone, provider: &str) -> Self {
        let mut conversation = Self {
            system: Vec::new(),
            turns: Turns::new("assistant", blocks::text),
        };
        let mut ids = WireIds::new(IdRule::Plain);
        let tools = ServerTools::of(messages.clone(), provider);
        for message in messages.clone() {
            conversation.push(message, provider, &tools, &mut ids);
        }
        conversation.turns.begin_with_caller();
        // Models refuse to continue a complete message. A paused one goes back as it is.
        if messages.last().is_some_and(is_over) {
            conversation.turns.end_with_caller();
        }
        conversation
    }

    fn push(&mut self, message: &Message, provider: &str, tools: &ServerTools, ids: &mut WireIds) {
        let results = message.tool_results();
        self.turns
            .add_results(results.filter_map(|result| blocks::result(result, provider, ids)));
        match message.role {
            Role::System if self.turns.is_empty() => self.system.extend(blocks::caller_blocks(message, provider)),
            Role::System => self.turns.instruct(message),
            Role::User | Role::Tool => self.turns.add_caller(blocks::caller_blocks(message, provider)),
            Role::Assistant => self
                .turns
                .add_model(blocks::model_blocks(message, provider, tools, ids)),
        }
    }
}

/// Returns whether a completion was the final one.
fn is_over(completion: &Message) -> bool {
    !completion.tags.is_trace && !matches!(completion.content.last(), Some(ContentPart::Opaque(_)))
}
