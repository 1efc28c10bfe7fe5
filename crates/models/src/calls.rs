//! Assembles tool calls of protocols with call blocks: each begins with a name, and its arguments
//! arrive at once or in pieces. All protocols share the spellings of calls and the comparison of
//! arguments.

use std::collections::HashSet;
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::fault::Fault;
use super::fields::{Fields, unknown_fields};
use agent::ports::ModelEvent;
use values::ids::IdSource;
use values::json::{Value, escaped_length};
use values::message::ToolCall;

/// The longest id of a call that the conversation uses, in bytes as JSON.
const MAX_ID: usize = 4 << 10;

/// The arguments of a call that gives none.
const NO_ARGUMENTS: &str = "{}";

/// The names of the field of a call with its arguments.
const ARGUMENTS: [&str; 4] = ["arguments", "input", "args", "parameters"];

/// The fields of a call that are read.
pub(super) const CALL_FIELDS: [&str; 11] = [
    "index",
    "type",
    "id",
    "call_id",
    "status",
    "name",
    "function",
    "arguments",
    "input",
    "args",
    "parameters",
];

/// Returns whether blocks and items of this type are calls of our tools. Gateways send the types of
/// one protocol in another.
pub(super) fn is_call(kind: &str) -> bool {
    matches!(
        kind,
        "tool_use" | "tool_call" | "function_call" | "function" | "custom_tool_call"
    )
}

/// Reads the arguments of a call, which are an object or a text.
pub(super) fn arguments_of(call: &Fields<'_>) -> Option<String> {
    ARGUMENTS.into_iter().find_map(|name| call.words(name))
}

/// Returns the part of a piece of arguments that is new. Some servers repeat the arguments so far.
pub(super) fn news(known: &str, piece: String) -> String {
    if is_same(known, &piece) {
        return String::new();
    }
    match piece.strip_prefix(known) {
        // An argument may have the same beginning as the whole.
        Some(rest) if known.starts_with('{') && !is_json(&[known, &piece].concat()) => rest.to_owned(),
        _ => piece,
    }
}

/// Returns whether the known arguments are complete, and the same value as others. Takes time for
/// the length of the others only.
pub(super) fn is_same(known: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    let is_complete = known.len() / 4 <= other.len() && known.trim_end().ends_with(['}', ']']) && is_json(known);
    is_complete && (other == known || read(other).is_some_and(|value| read(known) == Some(value)))
}

/// Returns whether a text is a JSON value.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

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

    /// Returns whether a call has the id.
    pub(super) fn is_used(&self, id: &str) -> bool {
        self.used.contains(id)
    }

    /// Returns the next call's index and an id that is unique in the completion: the given one if
    /// possible. An id that is too long is replaced.
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

impl Beginning {
    /// Reads a call in the spelling of any protocol. Its unknown fields must return to the
    /// provider.
    pub(super) fn of(call: &Fields<'_>) -> Self {
        let function = call.object("function");
        let function = function.as_ref().unwrap_or(call);
        Self {
            id: call.filled("call_id").or_else(|| call.filled("id")),
            name: function.filled("name"),
            arguments: arguments_of(function),
            extras: unknown_fields(call, &CALL_FIELDS, usize::MAX),
        }
    }
}

/// A call under construction.
#[derive(Debug)]
pub(super) struct Call {
    /// The index among the calls of the completion; `None` before the call is emitted.
    index: Option<usize>,
    /// The id. Before the call is emitted, it is the provider's and may be empty.
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

    /// Makes a call that is not emitted yet.
    pub(super) fn make(&self, beginning: Beginning) -> Result<Call, Fault> {
        if self.ids.count() >= self.limit {
            return Err(Fault::TooManyCalls(self.limit));
        }
        Ok(Call {
            index: None,
            id: beginning.id.unwrap_or_default(),
            name: beginning.name.ok_or(Fault::NamelessCall)?,
            given: beginning.arguments.unwrap_or_else(|| NO_ARGUMENTS.to_owned()),
            arguments: String::new(),
            extras: beginning.extras,
            is_closed: false,
        })
    }

    /// Emits the beginning of a call, and its arguments so far.
    pub(super) fn start(&mut self, call: &mut Call, events: &mut Vec<ModelEvent>) {
        let given = Some(std::mem::take(&mut call.id)).filter(|id| !id.is_empty());
        let (index, id) = self.ids.next(given);
        events.push(ModelEvent::ToolCallStarted {
            index,
            id: id.clone(),
            name: call.name.clone(),
        });
        (call.index, call.id) = (Some(index), id);
        call.emit(call.arguments.clone(), events);
    }
}

impl Call {
    /// Adds a piece of the arguments. A closed call with arguments ignores it.
    pub(super) fn push(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        if self.is_closed && !self.arguments.is_empty() {
            return;
        }
        let piece = news(&self.arguments, piece);
        self.arguments.push_str(&piece);
        self.emit(piece, events);
    }

    fn emit(&self, arguments: String, events: &mut Vec<ModelEvent>) {
        if let Some(index) = self.index
            && !arguments.is_empty()
        {
            events.push(ModelEvent::ToolCallDelta { index, arguments });
        }
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

    /// Returns whether the call has neither ended nor complete arguments.
    pub(super) fn is_open(&self) -> bool {
        !self.is_closed && self.given == NO_ARGUMENTS && !is_json(&self.arguments)
    }

    /// Returns whether the call is complete and has this id.
    pub(super) fn is_closed_with(&self, id: Option<&str>) -> bool {
        self.is_closed && self.index.is_some() && id == Some(self.id.as_str())
    }

    /// Returns whether a whole call has the name and the arguments of this call. Some servers
    /// repeat a call with another id.
    pub(super) fn is_of(&self, whole: &Beginning) -> bool {
        let arguments = whole.arguments.as_deref().unwrap_or(NO_ARGUMENTS);
        whole.name.as_ref() == Some(&self.name) && is_same(self.text(), arguments)
    }

    /// Returns whether a call that is not emitted yet repeats this call.
    pub(super) fn is_repeated_by(&self, other: &Self) -> bool {
        let is_like = (&self.id, &self.name) == (&other.id, &other.name);
        self.index.is_some() && is_like && is_same(self.text(), other.text())
    }

    /// Returns whether the call, which is not emitted yet, repeats a finished one.
    pub(super) fn repeats(&self, known: &ToolCall) -> bool {
        (&known.id, &known.name) == (&self.id, &self.name) && is_same(&known.arguments, self.text())
    }

    /// Returns the arguments of the pieces, or else of the beginning.
    fn text(&self) -> &str {
        if self.arguments.trim().is_empty() {
            &self.given
        } else {
            &self.arguments
        }
    }

    /// Returns the call; `None` if it was never emitted. Without pieces, it has the arguments of
    /// its beginning. If something cut the completion, empty ones may be missing ones, so they stay
    /// out.
    pub(super) fn finish(mut self, is_whole: bool, events: &mut Vec<ModelEvent>) -> Option<ToolCall> {
        self.index?;
        if self.arguments.trim().is_empty() && (is_whole || self.given != NO_ARGUMENTS) {
            let given = std::mem::take(&mut self.given);
            self.arguments.push_str(&given);
            self.emit(given, events);
        }
        Some(ToolCall {
            id: self.id,
            name: self.name,
            arguments: self.arguments,
            signature: self.extras,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::ids::UuidV7Source;

    #[test]
    fn only_the_new_part_of_a_piece_counts() {
        for (pieces, expected) in [
            (&[r#"{"a":"#, "1}"][..], r#"{"a":1}"#),
            (&[r#"{"a":"#, r#"{"a":1}"#], r#"{"a":1}"#),
            (&[r#"{"a"#, r#"{"a"#, r#"{"a":1}"#], r#"{"a":1}"#),
            (&[r#"{"a":1}"#, r#"{"a": 1}"#, r#"{"a":1}"#], r#"{"a":1}"#),
            (&[r#"{"a":"#, r#"{"a":1}}"#], r#"{"a":{"a":1}}"#),
            (&["{}", "{}"], "{}"),
            (&["1", "1"], "11"),
        ] {
            let mut known = String::new();
            for piece in pieces {
                let piece = news(&known, (*piece).to_owned());
                known.push_str(&piece);
            }
            assert_eq!(known, expected, "{pieces:?}");
        }
    }

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
