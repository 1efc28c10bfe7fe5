//! Assembles tool calls of protocols with call blocks: each begins with a name, and its arguments
//! arrive at once or in pieces.

use std::collections::HashSet;
use std::sync::Arc;

use super::fault::Fault;
use crate::agent::ports::ModelEvent;
use crate::ids::IdSource;
use crate::json::escaped_length;
use crate::message::ToolCall;

/// The longest id of a call that the conversation uses, in bytes as JSON.
const MAX_ID: usize = 4 << 10;

/// The arguments of a call that gives none.
const NO_ARGUMENTS: &str = "{}";

/// The ids of the calls of one completion.
#[derive(Debug)]
pub(super) struct CallIds {
    ids: Arc<dyn IdSource>,
    used: HashSet<String>,
    count: usize,
}

impl CallIds {
    /// Makes an empty set. Calls without an id get one from `ids`.
    pub(super) fn new(ids: Arc<dyn IdSource>) -> Self {
        Self {
            ids,
            used: HashSet::new(),
            count: 0,
        }
    }

    /// Returns the number of calls with an id.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the next call's index and an id that is unique in the completion: the given one if
    /// possible. One that is too long is replaced.
    pub(super) fn next(&mut self, given: Option<String>) -> (usize, String) {
        let index = self.count;
        self.count += 1;
        let given = given.filter(|id| escaped_length(id) <= MAX_ID && !self.used.contains(id));
        let id = given.unwrap_or_else(|| format!("call_{}", self.ids.next_uuid().simple()));
        self.used.insert(id.clone());
        (index, id)
    }
}

/// The beginning of a call.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// The id. Servers may omit it or give several calls the same one.
    pub(super) id: Option<String>,
    /// The tool's name.
    pub(super) name: Option<String>,
    /// The arguments at the beginning, which are used if no pieces arrive.
    pub(super) arguments: Option<String>,
    /// The fields that must return to the provider with the call, as one JSON object.
    pub(super) extras: Option<String>,
}

/// A call under construction.
#[derive(Debug)]
pub(super) struct Call {
    /// The index among the calls of the completion.
    index: usize,
    id: String,
    name: String,
    given: String,
    arguments: String,
    extras: Option<String>,
    is_closed: bool,
}

/// Begins the calls of one completion. Each gets an index and a unique id.
#[derive(Debug)]
pub(super) struct CallMaker {
    ids: CallIds,
    limit: usize,
}

impl CallMaker {
    /// Makes a maker of at most `limit` calls.
    pub(super) fn new(ids: Arc<dyn IdSource>, limit: usize) -> Self {
        let ids = CallIds::new(ids);
        Self { ids, limit }
    }

    /// Begins a call.
    pub(super) fn begin(&mut self, beginning: Beginning, events: &mut Vec<ModelEvent>) -> Result<Call, Fault> {
        if self.ids.count() >= self.limit {
            return Err(Fault::TooManyCalls(self.limit));
        }
        let name = beginning.name.ok_or(Fault::NamelessCall)?;
        let (index, id) = self.ids.next(beginning.id);
        events.push(ModelEvent::ToolCallStarted {
            index,
            id: id.clone(),
            name: name.clone(),
        });
        Ok(Call {
            index,
            id,
            name,
            given: beginning.arguments.unwrap_or_else(|| NO_ARGUMENTS.to_owned()),
            arguments: String::new(),
            extras: beginning.extras,
            is_closed: false,
        })
    }
}

impl Call {
    /// Adds a piece of the arguments. A closed call ignores it.
    pub(super) fn push(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        if self.is_closed || piece.is_empty() {
            return;
        }
        self.arguments.push_str(&piece);
        events.push(ModelEvent::ToolCallDelta {
            index: self.index,
            arguments: piece,
        });
    }

    /// Ends the arguments.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns whether this is the beginning of this call, which is still open.
    pub(super) fn is_begun_by(&self, beginning: &Beginning) -> bool {
        let is_same = beginning.id.as_ref() == Some(&self.id) && beginning.name.as_ref() == Some(&self.name);
        is_same && !self.is_closed
    }

    /// Returns the call. Without pieces, it has the arguments of its beginning. If something cut
    /// the completion, empty ones may be missing ones, so they stay out.
    pub(super) fn finish(mut self, is_whole: bool, events: &mut Vec<ModelEvent>) -> ToolCall {
        if self.arguments.trim().is_empty() && (is_whole || self.given != NO_ARGUMENTS) {
            self.is_closed = false;
            let given = std::mem::take(&mut self.given);
            self.push(given, events);
        }
        ToolCall {
            id: self.id,
            name: self.name,
            arguments: self.arguments,
            signature: self.extras,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::UuidV7Source;

    #[test]
    fn ids_that_are_repeated_or_too_long_are_replaced() {
        let mut ids = CallIds::new(Arc::new(UuidV7Source));
        let (longest, quotes) = ("x".repeat(MAX_ID), "\"".repeat(MAX_ID / 2));
        for id in ["c1", &longest, &quotes] {
            assert_eq!(ids.next(Some(id.to_owned())).1, id);
        }
        for id in ["c1".to_owned(), "x".repeat(MAX_ID + 1), "\"".repeat(MAX_ID / 2 + 1)] {
            let (index, made) = ids.next(Some(id));
            assert!(made.starts_with("call_") && made.len() < 64, "{made}");
            assert_eq!(ids.count(), index + 1);
        }
    }
}
