//! Builds one completion from its items. Knows neither streams nor bytes.
//!
//! The last list of items from the provider is authoritative. Until it arrives, and if it is empty,
//! the announced items count. Calls of the stream always count.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::call::{Call, Whole};
use super::item::{Item, Parts, Slot};
use super::message::{Holds, Message};
use super::partial_text::Fragment;
use super::reasoning::{Reasoning, Section};
use crate::calls::CallIds;
use crate::fault::Fault;
use crate::fields::{self, Fields};
use crate::room::Room;
use crate::settings::CapSettings;
use agent::ports::ModelEvent;
use agent::state::{FinishReason, ModelResponse};
use values::ids::IdSource;
use values::usage::Usage;

/// A completion that is being assembled.
#[derive(Debug)]
pub(super) struct Completion {
    provider: String,
    slots: Vec<Slot>,
    by_id: HashMap<String, usize>,
    by_index: HashMap<u64, usize>,
    /// The positions of the items in the provider's last list, in its order.
    listed: Option<Vec<usize>>,
    call_ids: CallIds,
    calls: usize,
    most_calls: usize,
    room: Room,
    model: Option<String>,
    response_id: Option<String>,
}

/// The target of a piece of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A part of a message.
    Message(Holds),
    /// A paragraph of reasoning.
    Reasoning(Section),
    /// A call's arguments.
    Arguments,
}

impl Completion {
    /// Makes an empty completion of the provider.
    pub(super) fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            provider: provider.to_owned(),
            slots: Vec::new(),
            by_id: HashMap::new(),
            by_index: HashMap::new(),
            listed: None,
            call_ids: CallIds::new(ids),
            calls: 0,
            most_calls: caps.tool_calls,
            room: Room::new(caps.parts),
            model: None,
            response_id: None,
        }
    }

    /// Takes the fields around the items.
    pub(super) fn take_envelope(&mut self, response: &Fields<'_>) {
        self.model = response.filled("model").or(self.model.take());
        self.response_id = response.filled("id").or(self.response_id.take());
    }

    /// Reads an item that an event announces or completely contains.
    pub(super) fn take_item(
        &mut self,
        event: &Fields<'_>,
        is_whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let Some((raw, item)) = event.get("item").and_then(|raw| Some((raw, fields::object(raw)?))) else {
            return Ok(());
        };
        let index = event.count("output_index");
        let id = item.borrowed_filled("id");
        let id = id.as_deref();
        let found = self.find(id, index).filter(|position| {
            let slot = &self.slots[*position];
            let same_id = id.is_none() || slot.id.is_none() || id == slot.id.as_deref();
            // Some servers give all items the same number, and some change an item's id during the
            // stream.
            slot.item.fits(&item) && (same_id || (is_whole && !slot.is_whole()))
        });
        // Some servers repeat a call as an item of its own. Its announcement was not emitted.
        let repeated = self.call(&item, Call::is_repeated_by).filter(|_| is_whole);
        if let (Some(_), Some(found)) = (repeated, found)
            && matches!(&self.slots[found].item, Item::Call(call) if !call.is_started())
        {
            self.slots[found].item = Item::Other;
        }
        let position = match repeated.or(found) {
            Some(position) => position,
            None => self.begin(Item::of(&item))?,
        };
        self.name(position, id, index);
        let slot = &mut self.slots[position];
        if is_whole {
            return slot.complete(raw, &item, &mut self.call_ids, &mut self.room, events);
        }
        if let Item::Call(call) = &mut slot.item {
            call.announce(&item, &mut self.call_ids, events);
        }
        Ok(())
    }

    /// Reads text of an item, which may not have been announced.
    pub(super) fn take_text(
        &mut self,
        event: &Fields<'_>,
        target: Target,
        fragment: Fragment,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let (id, index) = (event.borrowed_filled("item_id"), event.count("output_index"));
        let id = id.as_deref();
        let last = || self.slots.len().checked_sub(1);
        let found = self.find(id, index);
        let found = if id.is_none() && index.is_none() { last() } else { found };
        // A new item has the number of a complete one.
        let found = found.filter(|position| {
            let slot = &self.slots[*position];
            !slot.is_whole() || id.is_none() || slot.id.is_none() || id == slot.id.as_deref()
        });
        let position = match found {
            Some(position) => position,
            None => self.begin(target.item())?,
        };
        self.name(position, id, index);
        let at = |name: &str| event.count(name).unwrap_or_default();
        match (&mut self.slots[position].item, target) {
            (Item::Message(message), Target::Message(holds)) => {
                message.take_text((at("content_index"), holds), fragment, events);
            }
            (Item::Reasoning(reasoning), Target::Reasoning(section)) => {
                let index = match section {
                    Section::Summary => at("summary_index"),
                    Section::Content => at("content_index"),
                };
                reasoning.take_text((section, index), fragment, events);
            }
            (Item::Call(call), Target::Arguments) => call.take_arguments(fragment, events),
            // Text for an item of another kind is dropped.
            _ => {}
        }
        self.count(position)
    }

    /// Reads a whole part of a message, or a source of its text.
    pub(super) fn take_part(&mut self, event: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let index = event.count("content_index").unwrap_or_default();
        let Some(position) = self.find(event.borrowed_filled("item_id").as_deref(), event.count("output_index")) else {
            return Ok(());
        };
        if let Item::Message(message) = &mut self.slots[position].item {
            if let Some(part) = event.get("part") {
                message.complete_part(index, part, events);
            } else if let Some(source) = event.get("annotation") {
                message.cite(index, source);
            }
        }
        self.count(position)
    }

    /// Reads the list of all items. Ignores an empty list.
    pub(super) fn take_list(&mut self, list: &[&RawValue], events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let ids: HashSet<_> = list
            .iter()
            .filter_map(|raw| fields::object(raw)?.borrowed_filled("id"))
            .collect();
        let mut positions = Vec::new();
        let mut taken = HashSet::new();
        for (position, raw) in list.iter().enumerate() {
            let item = fields::object(raw).ok_or(Fault::Unreadable)?;
            let id = item.borrowed_filled("id");
            let named = id.as_deref().and_then(|id| self.by_id.get(id)).copied();
            // An item with a changed id retains its position.
            let is_other = |slot: &Slot| slot.id.as_deref().is_some_and(|id| ids.contains(id));
            let in_turn = self.slots.get(position).filter(|slot| !is_other(slot));
            let in_turn = in_turn.map(|_| position);
            let found = named.or(in_turn).filter(|position| !taken.contains(position));
            let found = found.filter(|position| self.slots[*position].item.fits(&item));
            let repeated = self.call(&item, Call::is_repeated_by);
            // The ids of a call may have changed.
            let is_free = |position: &usize| !taken.contains(position) && !is_other(&self.slots[*position]);
            let like = || self.call(&item, Call::is_like).filter(is_free);
            let position = match repeated.or(found).or_else(like) {
                Some(position) => position,
                None => self.begin(Item::of(&item))?,
            };
            if !taken.insert(position) {
                continue;
            }
            positions.push(position);
            self.name(position, id.as_deref(), None);
            self.slots[position].complete(raw, &item, &mut self.call_ids, &mut self.room, events)?;
        }
        self.emit_held(events);
        if !positions.is_empty() {
            let is_call =
                |position: &usize| matches!(&self.slots[*position].item, Item::Call(call) if call.is_started());
            let unlisted = (0..self.slots.len()).filter(|position| !taken.contains(position));
            positions.extend(unlisted.filter(is_call));
            self.listed = Some(positions);
        }
        Ok(())
    }

    /// Emits the calls that have the id of an earlier one, unless they repeat it.
    fn emit_held(&mut self, events: &mut Vec<ModelEvent>) {
        for position in 0..self.slots.len() {
            let (earlier, rest) = self.slots.split_at_mut(position);
            let Some(slot) = rest.first_mut() else { return };
            let Item::Call(held) = &mut slot.item else { continue };
            let is_again = |slot: &Slot| matches!(&slot.item, Item::Call(call) if call.is_again(held));
            if held.is_started() {
                continue;
            }
            if earlier.iter().any(is_again) {
                slot.item = Item::Other;
            } else {
                held.start(&mut self.call_ids, events);
            }
        }
    }

    /// Returns whether a message or a call is incomplete.
    pub(super) fn has_open_items(&self) -> bool {
        self.slots.iter().any(Slot::is_open)
    }

    /// Returns the whole completion.
    pub(super) fn finish(self, reason: FinishReason, usage: Usage) -> Result<ModelResponse, Fault> {
        let mut slots: Vec<_> = self.slots.into_iter().map(Some).collect();
        let positions = self.listed.unwrap_or_else(|| (0..slots.len()).collect());
        let mut parts = Parts::new(&self.provider);
        for position in positions {
            if let Some(slot) = slots[position].take() {
                parts.add(slot)?;
            }
        }
        Ok(ModelResponse {
            provider_fields: parts.owner(),
            finish_reason: reason,
            content: parts.content,
            provider_tool_calls: parts.provider_tool_calls,
            usage,
            model: self.model,
            response_id: self.response_id,
        })
    }

    fn find(&self, id: Option<&str>, index: Option<u64>) -> Option<usize> {
        let named = id.and_then(|id| self.by_id.get(id));
        named.or_else(|| self.by_index.get(&index?)).copied()
    }

    /// Returns the position of the last call that a whole call fits.
    fn call(&self, item: &Fields<'_>, fits: fn(&Call, &Whole) -> bool) -> Option<usize> {
        let whole = Whole::of(item).filter(|_| matches!(Item::of(item), Item::Call(_)))?;
        let is_it = |slot: &Slot| matches!(&slot.item, Item::Call(call) if fits(call, &whole));
        self.slots.iter().rposition(is_it)
    }

    fn begin(&mut self, item: Item) -> Result<usize, Fault> {
        if matches!(item, Item::Call(_)) {
            if self.calls >= self.most_calls {
                return Err(Fault::TooManyCalls(self.most_calls));
            }
            self.calls += 1;
        }
        self.room.take(1)?;
        self.slots.push(Slot::new(item));
        Ok(self.slots.len() - 1)
    }

    fn name(&mut self, position: usize, id: Option<&str>, index: Option<u64>) {
        if let Some(index) = index {
            self.by_index.insert(index, position);
        }
        if let Some(id) = id {
            if !self.by_id.contains_key(id) {
                self.by_id.insert(id.to_owned(), position);
            }
            self.slots[position].id.get_or_insert_with(|| id.to_owned());
        }
    }

    /// Takes room for the new parts of an item.
    fn count(&mut self, position: usize) -> Result<(), Fault> {
        let made = self.slots[position].item.take_made();
        self.room.take(made)
    }
}

impl Target {
    fn item(self) -> Item {
        match self {
            Self::Message(_) => Item::Message(Message::default()),
            Self::Reasoning(_) => Item::Reasoning(Reasoning::default()),
            Self::Arguments => Item::Call(Call::default()),
        }
    }
}
