//! Assembles tool calls from their beginnings and the pieces of their input.

use std::collections::HashSet;
use std::sync::Arc;

use crate::agent::ports::ModelEvent;
use crate::ids::IdSource;
use crate::json::Value;
use crate::message::ToolCall;
use crate::models::wire::Fields;

/// A call in the making.
#[derive(Debug)]
pub(super) struct Call {
    /// The place among the calls of the answer.
    place: usize,
    id: String,
    name: String,
    /// The input that the call began with, which stands if no pieces come.
    given: String,
    arguments: String,
    extras: Option<String>,
    closed: bool,
}

/// Why a call can't begin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallFault {
    /// The answer has as many calls as it may have.
    TooMany,
    /// The call has no name.
    Nameless,
}

/// Begins the calls of one answer: each gets a place and an id that no other has.
#[derive(Debug)]
pub(super) struct CallMaker {
    ids: Arc<dyn IdSource>,
    used_ids: HashSet<String>,
    made: usize,
    limit: usize,
}

impl CallMaker {
    /// Makes a maker of at most `limit` calls.
    pub(super) fn new(ids: Arc<dyn IdSource>, limit: usize) -> Self {
        Self {
            ids,
            used_ids: HashSet::new(),
            made: 0,
            limit,
        }
    }

    /// Begins the call that a block asks for.
    pub(super) fn begin(&mut self, block: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<Call, CallFault> {
        if self.made >= self.limit {
            return Err(CallFault::TooMany);
        }
        let name = block.filled("name").ok_or(CallFault::Nameless)?;
        let given = block.filled("id").filter(|id| !self.used_ids.contains(id));
        let id = given.unwrap_or_else(|| format!("call_{}", self.ids.next_uuid().simple()));
        self.used_ids.insert(id.clone());
        let known = ["type", "id", "name", "input"];
        let extras = block.iter().filter(|(field, _)| !known.contains(field));
        let extras = extras.map(|(field, raw)| format!("{}:{raw}", Value::from(field)));
        let extras = extras.collect::<Vec<_>>().join(",");
        let call = Call {
            place: self.made,
            id: id.clone(),
            name: name.clone(),
            given: block.get("input").map_or("{}", |raw| raw.get()).to_owned(),
            arguments: String::new(),
            extras: (!extras.is_empty()).then(|| format!("{{{extras}}}")),
            closed: false,
        };
        events.push(ModelEvent::ToolCallStarted {
            index: self.made,
            id,
            name,
        });
        self.made += 1;
        Ok(call)
    }
}

impl Call {
    /// Adds a piece of the input; a call that is closed takes none.
    pub(super) fn push(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        if self.closed || piece.is_empty() {
            return;
        }
        self.arguments.push_str(&piece);
        events.push(ModelEvent::ToolCallDelta {
            index: self.place,
            arguments: piece,
        });
    }

    /// Ends the input.
    pub(super) fn close(&mut self, events: &mut Vec<ModelEvent>) {
        if self.arguments.trim().is_empty() {
            let given = std::mem::take(&mut self.given);
            self.push(given, events);
        }
        self.closed = true;
    }

    /// Returns the call. Fields that the protocol does not know go back with it, as one object.
    pub(super) fn finish(self) -> ToolCall {
        ToolCall {
            id: self.id,
            name: self.name,
            arguments: self.arguments,
            signature: self.extras,
        }
    }
}
