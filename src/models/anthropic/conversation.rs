//! Lays messages out as the protocol wants them: turns alternate, the caller has the first one, and results of calls begin theirs.

use serde::Serialize;

use super::blocks::{self, Block};
use super::server_tools::ServerTools;
use crate::message::{ContentPart, Message, Role};
use crate::models::names::{IdRule, WireIds};

/// What the caller says where the protocol wants words of the caller and there are none.
const FILLER: &str = "Continue.";

/// The messages of a request.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Instructions that stand before all else of the conversation.
    pub(super) system: Vec<Block>,
    /// The turns.
    pub(super) turns: Vec<Turn>,
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

impl Conversation {
    /// Lays the messages out; what belongs to a provider goes back to `provider` alone.
    pub(super) fn of<'a>(messages: impl Iterator<Item = &'a Message> + Clone, provider: &str) -> Self {
        let mut conversation = Self::default();
        let mut ids = WireIds::new(IdRule::Plain);
        let tools = ServerTools::of(messages.clone(), provider);
        for message in messages.clone() {
            conversation.push(message, provider, &tools, &mut ids);
        }
        if conversation.turns.first().is_none_or(|turn| turn.role != USER) {
            conversation.turns.insert(0, Turn::new(USER));
            conversation.turns[0].content.extend(blocks::text(FILLER));
        }
        // Models refuse to go on from an answer that was complete; what a pause cut off goes back as it is.
        if conversation.turns.last().is_some_and(|turn| turn.role == ASSISTANT) && messages.last().is_some_and(is_over)
        {
            conversation.turn(USER).content.extend(blocks::text(FILLER));
        }
        conversation
    }

    fn push(&mut self, message: &Message, provider: &str, tools: &ServerTools, ids: &mut WireIds) {
        let results: Vec<Block> = message
            .tool_results()
            .filter_map(|result| blocks::result(result, provider, ids))
            .collect();
        if !results.is_empty() {
            self.turn(USER).push_results(results);
        }
        let (role, said) = match message.role {
            Role::System if self.turns.is_empty() => {
                self.system.extend(blocks::said(message, provider));
                return;
            }
            Role::System => (USER, instructions(message)),
            Role::User | Role::Tool => (USER, blocks::said(message, provider).collect()),
            Role::Assistant => (ASSISTANT, blocks::answered(message, provider, tools, ids)),
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

const USER: &str = "user";
const ASSISTANT: &str = "assistant";

impl Turn {
    fn new(role: &'static str) -> Self {
        Self {
            role,
            content: Vec::new(),
            results: 0,
        }
    }

    /// Adds results behind the results that are there and before all else.
    fn push_results(&mut self, results: Vec<Block>) {
        let place = self.results;
        self.results += results.len();
        self.content.splice(place..place, results);
    }
}

/// Tells whether an answer was a final one.
fn is_over(answer: &Message) -> bool {
    !answer.tags.is_trace && !matches!(answer.content.last(), Some(ContentPart::Opaque(_)))
}

/// Encodes instructions in the middle of a conversation, where the protocol knows the caller's words only.
fn instructions(message: &Message) -> Vec<Block> {
    let text = message.joined_text();
    let text = text.trim();
    let block = (!text.is_empty()).then(|| blocks::text(&format!("<system>\n{text}\n</system>")));
    block.flatten().into_iter().collect()
}
