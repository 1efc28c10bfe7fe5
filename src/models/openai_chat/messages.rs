//! Encodes the messages of requests, in an order of roles that the server accepts. A message always
//! encodes to the same bytes.

use super::content::{Block, blocks, result_blocks};
use super::dialect::Dialect;
use super::drafts::{CallerDraft, Draft, ModelDraft, WireMessage};
use crate::message::{Message, Role, ToolResult};
use crate::models::capability_settings::Roles;
use crate::models::encode::{Items, instruction};
use crate::models::names::{IdRule, WireIds};
use crate::models::target::Target;
use crate::models::turns::FILLER;
use crate::session::Fold;

/// What the model says between results of tools and the caller, for servers that demand it.
const BRIDGE: &str = "I have the results.";

/// The messages of a request, encoded one after another.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    dialect: Dialect,
    target: Target,
    ids: WireIds,
    /// Instructions at the beginning, for a server that wants one system message.
    system: Vec<String>,
    messages: Items,
    /// The newest message, to which its neighbour may be joined.
    last: Option<Draft>,
    /// Whether the newest of the complete messages is a result.
    is_after_result: bool,
    /// Content that the results of the newest step can't hold.
    attachments: Vec<Block>,
    /// How many pictures and files the messages have.
    seen: usize,
}

impl Conversation {
    /// Makes a conversation without messages.
    pub(super) fn new(dialect: &Dialect, target: Target) -> Self {
        let ids = WireIds::new(dialect.call_ids);
        Self {
            dialect: dialect.clone(),
            ids: if target.can.nine_letter_ids {
                ids.with_others(IdRule::Nine)
            } else {
                ids
            },
            target,
            system: Vec::new(),
            messages: Items::default(),
            last: None,
            is_after_result: false,
            attachments: Vec::new(),
            seen: 0,
        }
    }

    /// Ends the conversation, and returns the instructions above it and its messages.
    pub(super) fn end(&mut self, instructions: &str) -> (Items, &Items) {
        self.flush_attachments();
        let model_ends = match &self.last {
            Some(last) => matches!(last, Draft::Model(_)),
            None => !self.is_after_result,
        };
        if self.roles() == Roles::Strict && model_ends {
            self.add_caller(vec![Block::Text(FILLER.to_owned())], None);
        }
        self.close();
        let texts = std::iter::once(instructions).chain(self.system.iter().map(String::as_str));
        let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
        let mut system = Items::default();
        if !texts.is_empty() {
            system.push(&WireMessage::plain("system", texts.join("\n\n")));
        }
        (system, &self.messages)
    }

    fn roles(&self) -> Roles {
        self.target.can.roles
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
                    self.add_caller(content, message.name.as_deref());
                }
            }
            Role::Assistant => {
                if let Some(draft) = ModelDraft::of(message, &self.dialect, &self.target, &mut self.ids) {
                    self.add_model(draft);
                }
            }
        }
    }

    fn instruct(&mut self, message: &Message) {
        let text = message.joined_text();
        if self.roles() == Roles::Any {
            self.close();
            let mut wire = WireMessage::plain("system", text);
            if let Some(name) = message.name.as_deref().filter(|name| is_speaker_name(name)) {
                wire.set_text("name", name);
            }
            self.push(&wire, false);
        } else if self.last.is_none() && self.messages.is_empty() {
            self.system.push(text);
        } else if let Some(text) = instruction(message) {
            self.add_caller(vec![Block::Text(text)], None);
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
                text = "The result follows as an attachment.".into();
            }
            let label = format!("Attachments of the result of {} ({id}):", result.name);
            self.attachments.push(Block::Text(label));
            self.attachments.extend(media);
        }
        let mut wire = WireMessage::plain("tool", text);
        wire.set_text("tool_call_id", id);
        self.push(&wire, true);
    }

    fn add_caller(&mut self, content: Vec<Block>, name: Option<&str>) {
        let name = name.filter(|name| self.roles() != Roles::Strict && is_speaker_name(name));
        let next = CallerDraft {
            content,
            name: name.map(str::to_owned),
        };
        match &mut self.last {
            Some(Draft::Caller(last)) if self.target.can.roles != Roles::Any && last.name == next.name => {
                last.join(next);
            }
            _ => {
                self.close();
                if self.roles() == Roles::Strict && self.is_after_result {
                    self.push(&Draft::Model(ModelDraft::saying(BRIDGE)).wire(), false);
                }
                self.last = Some(Draft::Caller(next));
            }
        }
    }

    fn add_model(&mut self, next: ModelDraft) {
        if self.roles() == Roles::Strict && self.last.is_none() && self.messages.is_empty() {
            self.push(&WireMessage::plain("user", FILLER), false);
        }
        match &mut self.last {
            Some(Draft::Model(last)) if self.target.can.roles != Roles::Any => last.join(next),
            _ => {
                self.close();
                self.last = Some(Draft::Model(next));
            }
        }
    }

    fn flush_attachments(&mut self) {
        if !self.attachments.is_empty() {
            let attachments = std::mem::take(&mut self.attachments);
            self.add_caller(attachments, None);
        }
    }

    fn close(&mut self) {
        if let Some(last) = self.last.take() {
            self.push(&last.wire(), false);
        }
    }

    fn push(&mut self, message: &WireMessage<'_>, is_result: bool) {
        self.messages.push(message);
        self.is_after_result = is_result;
    }
}

impl Fold for Conversation {
    fn is_like(&self, other: &Self) -> bool {
        (&self.dialect, &self.target) == (&other.dialect, &other.target)
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

/// Returns whether the protocol accepts the speaker's name. Other names are dropped, so that the
/// request does not fail.
fn is_speaker_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(plain)
}
