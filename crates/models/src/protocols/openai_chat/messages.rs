//! Encodes the messages of requests, in an order of roles that the server accepts. A message always
//! encodes to the same bytes.

use super::content::{Block, blocks, result_blocks};
use super::drafts::{CALLER, Draft, MODEL, RESULT};
use super::server::Server;
use crate::capability_settings::Roles;
use crate::conversation::FILLER;
use crate::encode::{Items, instruction};
use crate::names::{IdRule, WireIds};
use crate::target::Target;
use values::message::{Message, Role, ToolResult};
use values::session::Fold;

/// The text of the model between results of tools and the caller, for servers that demand one.
const BRIDGE: &str = "I have the results.";

/// The messages of a request, encoded one after another.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    server: Server,
    target: Target,
    ids: WireIds,
    /// Instructions at the beginning, for a server that wants one system message.
    system: Vec<String>,
    messages: Items,
    /// The newest message, to which its neighbour may be joined.
    last: Option<Draft>,
    /// The role of the newest of the complete messages.
    last_role: Option<&'static str>,
    /// Content that the results of the newest step can't hold.
    attachments: Vec<Block>,
    /// The number of pictures and files in the messages.
    seen: usize,
}

impl Conversation {
    /// Makes a conversation without messages.
    pub(super) fn new(server: Server, target: Target) -> Self {
        let ids = WireIds::new(server.call_ids());
        Self {
            server,
            ids: if target.can.nine_letter_ids {
                ids.with_others(IdRule::Nine)
            } else {
                ids
            },
            target,
            system: Vec::new(),
            messages: Items::default(),
            last: None,
            last_role: None,
            attachments: Vec::new(),
            seen: 0,
        }
    }

    /// Ends the conversation, and returns the instructions above it and its messages.
    pub(super) fn end(&mut self, instructions: &str) -> (Items, &Items) {
        self.flush_attachments();
        let role = self.last.as_ref().map(|last| last.role).or(self.last_role);
        if self.roles() == Roles::Strict && matches!(role, None | Some(MODEL)) {
            self.add_draft(Draft::saying(CALLER, FILLER));
        }
        self.close();
        let texts = std::iter::once(instructions).chain(self.system.iter().map(String::as_str));
        let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
        let mut system = Items::default();
        if !texts.is_empty() {
            system.push(&Draft::saying("system", texts.join("\n\n")));
        }
        (system, &self.messages)
    }

    fn roles(&self) -> Roles {
        self.target.can.roles.unwrap_or_default()
    }

    fn add(&mut self, message: &Message) {
        // Results of one step stay together, so content that they can't hold follows after the last
        // result.
        if message.role != Role::Tool {
            self.flush_attachments();
        }
        for result in message.tool_results() {
            self.add_result(result);
        }
        match message.role {
            Role::System => self.instruct(message),
            Role::User | Role::Tool => {
                let content = blocks(&message.content, &self.target, &mut self.seen);
                let has_results = message.role == Role::Tool || message.tool_results().next().is_some();
                if !content.is_empty() || !has_results {
                    let name = message.name.as_deref().filter(|_| self.roles() != Roles::Strict);
                    self.add_draft(Draft::new(CALLER, content).named(name));
                }
            }
            Role::Assistant => {
                if let Some(draft) = Draft::of_model(message, self.server, &self.target, &mut self.ids) {
                    self.add_draft(draft);
                }
            }
        }
    }

    fn instruct(&mut self, message: &Message) {
        let text = message.joined_text();
        if self.roles() == Roles::Any {
            self.close();
            self.push(&Draft::saying("system", text).named(message.name.as_deref()));
        } else if self.last.is_none() && self.messages.is_empty() {
            self.system.push(text);
        } else if let Some(text) = instruction(message) {
            self.add_draft(Draft::saying(CALLER, text));
        }
    }

    /// Adds a result as text. Sets images and files aside, since the protocol does not allow them
    /// in a result.
    fn add_result(&mut self, result: &ToolResult) {
        self.close();
        let id = self.ids.of_result(result).into_owned();
        let (mut text, media) = result_blocks(&result.content, &self.target, &mut self.seen);
        if !media.is_empty() {
            if text.is_empty() {
                text.push_str("The result follows as an attachment.");
            }
            let label = format!("Attachments of the result of {} ({id}):", result.name);
            self.attachments.push(Block::Text(label));
            self.attachments.extend(media);
        }
        self.push(&Draft::saying(RESULT, text).with("tool_call_id", &id));
    }

    /// Adds a message, or joins it to its neighbour.
    fn add_draft(&mut self, next: Draft) {
        let roles = self.roles();
        if let Some(last) = &mut self.last
            && roles != Roles::Any
            && last.is_continued_by(&next)
        {
            last.join(next);
            return;
        }
        self.close();
        if roles == Roles::Strict {
            match (self.last_role, next.role) {
                (None, MODEL) => self.push(&Draft::saying(CALLER, FILLER)),
                (Some(RESULT), CALLER) => self.push(&Draft::saying(MODEL, BRIDGE)),
                _ => {}
            }
        }
        self.last = Some(next);
    }

    fn flush_attachments(&mut self) {
        if !self.attachments.is_empty() {
            let attachments = std::mem::take(&mut self.attachments);
            self.add_draft(Draft::new(CALLER, attachments));
        }
    }

    fn close(&mut self) {
        if let Some(last) = self.last.take() {
            self.push(&last);
        }
    }

    fn push(&mut self, message: &Draft) {
        self.messages.push(message);
        self.last_role = Some(message.role);
    }
}

impl Fold for Conversation {
    fn is_like(&self, other: &Self) -> bool {
        (self.server, &self.target) == (other.server, &other.target)
    }

    fn extend<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
        for message in messages {
            self.add(message);
        }
    }

    fn retained(self) -> Self {
        Self {
            messages: self.messages.retained(),
            ..self
        }
    }

    fn bytes(&self) -> usize {
        let system: usize = self.system.iter().map(String::len).sum();
        self.messages.bytes() + system + self.last.as_ref().map_or(0, Draft::bytes) + self.ids.bytes()
    }
}
