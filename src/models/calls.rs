//! Assembles tool calls of protocols with call blocks: each begins with a name, and its arguments
//! arrive at once or in pieces.

use std::collections::HashSet;
use std::sync::Arc;

use super::wire::Fields;
use crate::agent::ports::ModelEvent;
use crate::ids::IdSource;
use crate::json::Value;
use crate::message::ToolCall;

/// How a call begins.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// The id; servers may give none, or one to several calls.
    pub(super) id: Option<String>,
    /// The tool's name.
    pub(super) name: Option<String>,
    /// The arguments that the call began with, which count if no pieces come.
    pub(super) arguments: Option<String>,
    /// What goes back with the call, as one JSON object.
    pub(super) extras: Option<String>,
}

/// A call in the making.
#[derive(Debug)]
pub(super) struct Call {
    /// The index among the calls of the completion.
    position: usize,
    id: String,
    name: String,
    given: String,
    arguments: String,
    extras: Option<String>,
    closed: bool,
}

/// Why a call can't begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallFault {
    /// The completion has the maximum of calls.
    TooMany,
    /// The call has no name.
    Nameless,
}

/// Begins the calls of one completion. Each gets an index and a unique id.
#[derive(Debug)]
pub(super) struct CallMaker {
    ids: Arc<dyn IdSource>,
    used_ids: HashSet<String>,
    made: usize,
    limit: usize,
}

impl CallMaker {
    /// Allows at most `limit` calls.
    pub(super) fn new(ids: Arc<dyn IdSource>, limit: usize) -> Self {
        Self {
            ids,
            used_ids: HashSet::new(),
            made: 0,
            limit,
        }
    }

    /// Returns how many calls have begun.
    pub(super) fn made(&self) -> usize {
        self.made
    }

    /// Begins a call.
    pub(super) fn begin(&mut self, beginning: Beginning, events: &mut Vec<ModelEvent>) -> Result<Call, CallFault> {
        if self.made >= self.limit {
            return Err(CallFault::TooMany);
        }
        let name = beginning.name.ok_or(CallFault::Nameless)?;
        let given = beginning.id.filter(|id| !self.used_ids.contains(id));
        let id = given.unwrap_or_else(|| format!("call_{}", self.ids.next_uuid().simple()));
        self.used_ids.insert(id.clone());
        let call = Call {
            position: self.made,
            id: id.clone(),
            name: name.clone(),
            given: beginning.arguments.unwrap_or_else(|| "{}".to_owned()),
            arguments: String::new(),
            extras: beginning.extras,
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
    /// Adds a piece of the arguments; a call that is closed takes none.
    pub(super) fn push(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        if self.closed || piece.is_empty() {
            return;
        }
        self.arguments.push_str(&piece);
        events.push(ModelEvent::ToolCallDelta {
            index: self.position,
            arguments: piece,
        });
    }

    /// Ends the arguments.
    pub(super) fn close(&mut self, events: &mut Vec<ModelEvent>) {
        if self.arguments.trim().is_empty() {
            let given = std::mem::take(&mut self.given);
            self.push(given, events);
        }
        self.closed = true;
    }

    /// Returns the call.
    pub(super) fn finish(self) -> ToolCall {
        ToolCall {
            id: self.id,
            name: self.name,
            arguments: self.arguments,
            signature: self.extras,
        }
    }
}

/// Returns the fields that are not known as one JSON object; `None` if there is none.
pub(super) fn extras(fields: &Fields<'_>, known: &[&str]) -> Option<String> {
    let extras = fields.iter().filter(|(field, _)| !known.contains(field));
    let extras: Vec<_> = extras
        .map(|(field, raw)| format!("{}:{raw}", Value::from(field)))
        .collect();
    (!extras.is_empty()).then(|| format!("{{{}}}", extras.join(",")))
}
