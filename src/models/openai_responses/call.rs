//! A function call under construction.

use super::partial_text::{Fragment, PartialText};
use crate::agent::ports::ModelEvent;
use crate::message::ToolCall;
use crate::models::calls::CallIds;
use crate::models::fault::Fault;
use crate::models::wire::{Fields, MOST_UNKNOWN, unknown_fields};

/// Fields of a call that are read. Other fields return to the provider with the call.
const KNOWN: [&str; 6] = ["type", "id", "call_id", "name", "arguments", "status"];

/// A call under construction.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// The index and the id of the announced call.
    announced: Option<(usize, String)>,
    name: String,
    arguments: PartialText,
    extras: Option<String>,
}

impl Call {
    /// Reads the item that announces the call. Its arguments follow later.
    pub(super) fn announce(&mut self, item: &Fields<'_>, call_ids: &mut CallIds, events: &mut Vec<ModelEvent>) {
        if let Some(name) = item.filled("name") {
            self.name = name;
        }
        if self.announced.is_none() && !self.name.is_empty() {
            let (index, id) = call_ids.next(item.filled("call_id").or_else(|| item.filled("id")));
            events.push(ModelEvent::ToolCallStarted {
                index,
                id: id.clone(),
                name: self.name.clone(),
            });
            self.announced = Some((index, id));
            let received = self.arguments.received().to_owned();
            self.emit(received, events);
        }
    }

    /// Takes arguments.
    pub(super) fn take_arguments(&mut self, fragment: Fragment, events: &mut Vec<ModelEvent>) {
        let added = self.arguments.take(fragment);
        self.emit(added, events);
    }

    /// Takes the whole item.
    pub(super) fn settle(&mut self, item: &Fields<'_>, call_ids: &mut CallIds, events: &mut Vec<ModelEvent>) {
        self.announce(item, call_ids, events);
        // Some servers send an object instead of its JSON text.
        let arguments = item.get("arguments");
        let arguments = arguments.map(|raw| item.text("arguments").unwrap_or_else(|| raw.get().to_owned()));
        self.take_arguments(Fragment::Whole(arguments.unwrap_or_default()), events);
        self.extras = unknown_fields(item, &KNOWN, MOST_UNKNOWN);
    }

    /// Returns the finished call.
    pub(super) fn finish(self) -> Result<ToolCall, Fault> {
        let (_, id) = self.announced.ok_or(Fault::NamelessCall)?;
        Ok(ToolCall {
            id,
            name: self.name,
            arguments: self.arguments.finish(),
            signature: self.extras,
        })
    }

    fn emit(&self, arguments: String, events: &mut Vec<ModelEvent>) {
        if let Some((index, _)) = self.announced
            && !arguments.is_empty()
        {
            events.push(ModelEvent::ToolCallDelta { index, arguments });
        }
    }
}
