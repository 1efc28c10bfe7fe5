//! The items of a response, and the content parts that they become.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::call::Call;
use super::input::CALLERS_CALLS;
use super::message::Message;
use super::reasoning::Reasoning;
use crate::calls::{CallIds, is_call};
use crate::fault::Fault;
use crate::fields::Fields;
use crate::room::Room;
use agent::ports::ModelEvent;
use values::json::RawJson;
use values::message::{ContentPart, OpaquePart, ProviderFields, ReasoningPart};

/// The slot of an item in a completion.
#[derive(Debug)]
pub(super) struct Slot {
    /// The provider's id of the item, if it has one.
    pub(super) id: Option<String>,
    pub(super) item: Item,
    /// The whole item, once it is complete.
    whole: Option<String>,
    /// The status of the whole item.
    status: Option<String>,
}

/// An item under construction.
#[derive(Debug)]
pub(super) enum Item {
    /// Words and refusals.
    Message(Message),
    /// Reasoning.
    Reasoning(Reasoning),
    /// A call of one of our tools.
    Call(Call),
    /// An item that only the provider understands.
    Other,
}

impl Slot {
    /// Makes the slot of an item that has just begun.
    pub(super) fn new(item: Item) -> Self {
        Self {
            id: None,
            item,
            whole: None,
            status: None,
        }
    }

    /// Returns whether the item is complete.
    pub(super) fn is_whole(&self) -> bool {
        self.whole.is_some()
    }

    /// Returns whether the message or the call is incomplete. The end of a call may be missing if
    /// its arguments are complete.
    pub(super) fn is_open(&self) -> bool {
        let status = self.status.as_deref();
        let has_end = self.is_whole() && status != Some("in_progress");
        match &self.item {
            Item::Message(_) => status == Some("incomplete"),
            Item::Call(call) => {
                status == Some("incomplete") || (call.is_started() && !has_end && !call.has_whole_arguments())
            }
            Item::Reasoning(_) | Item::Other => false,
        }
    }

    /// Takes the whole item.
    pub(super) fn complete(
        &mut self,
        raw: &RawValue,
        item: &Fields<'_>,
        call_ids: &mut CallIds,
        room: &mut Room,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        self.whole = Some(raw.get().to_owned());
        self.status = item.text("status");
        match &mut self.item {
            Item::Message(message) => message.complete(item, room, events)?,
            Item::Reasoning(reasoning) => reasoning.complete(item, events),
            Item::Call(call) => call.complete(item, call_ids, events),
            Item::Other => {}
        }
        room.take(self.item.take_made())
    }
}

impl Item {
    /// Makes the item of an announcement.
    pub(super) fn of(item: &Fields<'_>) -> Self {
        match item.borrowed_text("type").as_deref() {
            Some("message") => Self::Message(Message::default()),
            Some("reasoning") => Self::Reasoning(Reasoning::default()),
            Some(kind) if is_call(kind) => Self::Call(Call::default()),
            _ => Self::Other,
        }
    }

    /// Returns how many parts were added since the last call.
    pub(super) fn take_made(&mut self) -> usize {
        match self {
            Self::Message(message) => message.take_made(),
            Self::Reasoning(reasoning) => reasoning.take_made(),
            Self::Call(_) | Self::Other => 0,
        }
    }

    /// Returns whether an announced item is of this kind.
    pub(super) fn fits(&self, item: &Fields<'_>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(&Self::of(item))
    }
}

/// The parts of a finished completion.
pub(super) struct Parts<'a> {
    provider: &'a str,
    /// The parts.
    pub(super) content: Vec<ContentPart>,
    has_marks: bool,
    /// The number of calls of the provider's own tools, by name.
    pub(super) provider_tool_calls: BTreeMap<String, u64>,
    after_message: bool,
}

impl<'a> Parts<'a> {
    /// Makes an empty list of parts.
    pub(super) fn new(provider: &'a str) -> Self {
        Self {
            provider,
            content: Vec::new(),
            has_marks: false,
            provider_tool_calls: BTreeMap::new(),
            after_message: false,
        }
    }

    /// Adds the parts of an item.
    pub(super) fn add(&mut self, slot: Slot) -> Result<(), Fault> {
        let after_message = std::mem::take(&mut self.after_message);
        match slot.item {
            Item::Message(message) => {
                let id = slot.id.filter(|_| after_message);
                self.has_marks |= message.finish(self.provider, id.as_deref(), &mut self.content);
                self.after_message = true;
            }
            Item::Reasoning(reasoning) => {
                let text = reasoning.finish();
                if !text.is_empty() {
                    self.content.push(ContentPart::Reasoning(ReasoningPart {
                        text,
                        id: slot.id,
                        ..ReasoningPart::default()
                    }));
                }
                self.add_opaque(slot.whole);
            }
            Item::Call(call) => {
                let call = call.finish()?;
                self.has_marks |= call.signature.is_some();
                self.content.push(ContentPart::ToolCall(call));
            }
            // An item that was only announced can't be sent back.
            Item::Other => {
                self.count(slot.whole.as_deref());
                self.add_opaque(slot.whole);
            }
        }
        Ok(())
    }

    /// Returns the owner of the marks of texts and calls, since the marks do not name it; `None` if
    /// there are no marks.
    pub(super) fn owner(&self) -> Option<ProviderFields> {
        self.has_marks.then(|| ProviderFields::owner(self.provider))
    }

    /// Counts an item if it is a call that the provider executed. The name is the item's type
    /// without its suffix.
    fn count(&mut self, item: Option<&str>) {
        let kind = item.and_then(Fields::parse).and_then(|item| item.text("type"));
        let kind = kind.filter(|kind| !CALLERS_CALLS.contains(&kind.as_str()));
        if let Some(tool) = kind.as_deref().and_then(|kind| kind.strip_suffix("_call")) {
            *self.provider_tool_calls.entry(tool.to_owned()).or_default() += 1;
        }
    }

    fn add_opaque(&mut self, whole: Option<String>) {
        self.content.extend(whole.map(|raw| {
            ContentPart::Opaque(OpaquePart {
                provider: self.provider.to_owned(),
                raw: RawJson::new(raw),
            })
        }));
    }
}
