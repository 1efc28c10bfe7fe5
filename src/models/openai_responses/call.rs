//! A function call under construction, and the ids of the calls of one response.

use std::collections::HashSet;
use std::sync::Arc;

use super::kept::unknown_fields;
use super::words::Words;
use crate::agent::ports::ModelEvent;
use crate::ids::IdSource;
use crate::message::ToolCall;
use crate::models::wire::Fields;

/// Fields of a call that are read; others go back with it.
const KNOWN: [&str; 6] = ["type", "id", "call_id", "name", "arguments", "status"];

/// A call that never got a name.
#[derive(Debug)]
pub(super) struct NamelessCall;

/// The calls of one answer that were told of.
#[derive(Debug)]
pub(super) struct Told {
    ids: Arc<dyn IdSource>,
    used: HashSet<String>,
    count: usize,
}

impl Told {
    /// Knows no call yet; calls without an id get one from `ids`.
    pub(super) fn new(ids: Arc<dyn IdSource>) -> Self {
        Self {
            ids,
            used: HashSet::new(),
            count: 0,
        }
    }

    /// Returns the next call's place and an id that no other call of the answer has.
    fn next(&mut self, given: Option<String>) -> (usize, String) {
        let place = self.count;
        self.count += 1;
        let given = given.filter(|id| !self.used.contains(id));
        let id = given.unwrap_or_else(|| format!("call_{}", self.ids.next_uuid().simple()));
        self.used.insert(id.clone());
        (place, id)
    }
}

/// A call in the making.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// The place and the id under which it was told of.
    told: Option<(usize, String)>,
    name: String,
    arguments: Words,
    extras: Option<String>,
}

impl Call {
    /// Takes the item that announces the call. Its arguments still come.
    pub(super) fn announce(&mut self, item: &Fields<'_>, told: &mut Told, events: &mut Vec<ModelEvent>) {
        if let Some(name) = item.filled("name") {
            self.name = name;
        }
        if self.told.is_none() && !self.name.is_empty() {
            let (place, id) = told.next(item.filled("call_id").or_else(|| item.filled("id")));
            events.push(ModelEvent::ToolCallStarted {
                index: place,
                id: id.clone(),
                name: self.name.clone(),
            });
            self.told = Some((place, id));
            let said = self.arguments.said().to_owned();
            self.tell(said, events);
        }
    }

    /// Adds a piece of the arguments.
    pub(super) fn add(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        self.arguments.add(&piece);
        self.tell(piece, events);
    }

    /// Takes the whole arguments.
    pub(super) fn settle_arguments(&mut self, whole: String, events: &mut Vec<ModelEvent>) {
        let rest = self.arguments.settle(whole);
        self.tell(rest, events);
    }

    /// Takes the whole item.
    pub(super) fn settle(&mut self, item: &Fields<'_>, told: &mut Told, events: &mut Vec<ModelEvent>) {
        self.announce(item, told, events);
        // Some servers send an object where the protocol has its text.
        let arguments = item.get("arguments");
        let arguments = arguments.map(|raw| item.text("arguments").unwrap_or_else(|| raw.get().to_owned()));
        self.settle_arguments(arguments.unwrap_or_default(), events);
        self.extras = unknown_fields(item, &KNOWN);
    }

    /// Returns the finished call.
    pub(super) fn finish(self) -> Result<ToolCall, NamelessCall> {
        let (_, id) = self.told.ok_or(NamelessCall)?;
        Ok(ToolCall {
            id,
            name: self.name,
            arguments: self.arguments.finish(),
            signature: self.extras,
        })
    }

    fn tell(&self, arguments: String, events: &mut Vec<ModelEvent>) {
        if let Some((index, _)) = self.told
            && !arguments.is_empty()
        {
            events.push(ModelEvent::ToolCallDelta { index, arguments });
        }
    }
}
