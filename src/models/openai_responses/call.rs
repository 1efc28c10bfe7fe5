//! A function call under construction, and the ids of the calls of one response.

use std::collections::HashSet;
use std::sync::Arc;

use super::partial_text::PartialText;
use super::unknown_fields::unknown_fields;
use crate::agent::ports::ModelEvent;
use crate::ids::IdSource;
use crate::message::ToolCall;
use crate::models::wire::Fields;

/// Fields of a call that are read; others go back with it.
const KNOWN: [&str; 6] = ["type", "id", "call_id", "name", "arguments", "status"];

/// A call that never got a name.
#[derive(Debug)]
pub(super) struct NamelessCall;

/// The ids of the calls that were announced in one completion.
#[derive(Debug)]
pub(super) struct CallIds {
    ids: Arc<dyn IdSource>,
    used: HashSet<String>,
    count: usize,
}

impl CallIds {
    /// Knows no call yet; calls without an id get one from `ids`.
    pub(super) fn new(ids: Arc<dyn IdSource>) -> Self {
        Self {
            ids,
            used: HashSet::new(),
            count: 0,
        }
    }

    /// Returns the next call's index and an id that no other call of the completion has.
    fn next(&mut self, given: Option<String>) -> (usize, String) {
        let position = self.count;
        self.count += 1;
        let given = given.filter(|id| !self.used.contains(id));
        let id = given.unwrap_or_else(|| format!("call_{}", self.ids.next_uuid().simple()));
        self.used.insert(id.clone());
        (position, id)
    }
}

/// A call in the making.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// The index and the id under which it was announced.
    announced: Option<(usize, String)>,
    name: String,
    arguments: PartialText,
    extras: Option<String>,
}

impl Call {
    /// Takes the item that announces the call. Its arguments still come.
    pub(super) fn announce(&mut self, item: &Fields<'_>, call_ids: &mut CallIds, events: &mut Vec<ModelEvent>) {
        if let Some(name) = item.filled("name") {
            self.name = name;
        }
        if self.announced.is_none() && !self.name.is_empty() {
            let (position, id) = call_ids.next(item.filled("call_id").or_else(|| item.filled("id")));
            events.push(ModelEvent::ToolCallStarted {
                index: position,
                id: id.clone(),
                name: self.name.clone(),
            });
            self.announced = Some((position, id));
            let received = self.arguments.received().to_owned();
            self.emit(received, events);
        }
    }

    /// Adds a piece of the arguments.
    pub(super) fn add(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        self.arguments.add(&piece);
        self.emit(piece, events);
    }

    /// Takes the whole arguments.
    pub(super) fn settle_arguments(&mut self, whole: String, events: &mut Vec<ModelEvent>) {
        let rest = self.arguments.settle(whole);
        self.emit(rest, events);
    }

    /// Takes the whole item.
    pub(super) fn settle(&mut self, item: &Fields<'_>, call_ids: &mut CallIds, events: &mut Vec<ModelEvent>) {
        self.announce(item, call_ids, events);
        // Some servers send an object where the protocol has its text.
        let arguments = item.get("arguments");
        let arguments = arguments.map(|raw| item.text("arguments").unwrap_or_else(|| raw.get().to_owned()));
        self.settle_arguments(arguments.unwrap_or_default(), events);
        self.extras = unknown_fields(item, &KNOWN);
    }

    /// Returns the finished call.
    pub(super) fn finish(self) -> Result<ToolCall, NamelessCall> {
        let (_, id) = self.announced.ok_or(NamelessCall)?;
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
