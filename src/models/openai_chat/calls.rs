//! Assembles tool calls from fragments. Servers number, name and identify fragments in many ways.
//! No call may be lost or duplicated.

use std::sync::Arc;

use crate::agent::ports::ModelEvent;
use crate::ids::IdSource;
use crate::message::ToolCall;
use crate::models::calls::CallIds;
use crate::models::fault::Fault;
use crate::models::wire::{self, Fields, MOST_UNKNOWN, object_text};

/// A call under construction.
#[derive(Debug, Default)]
struct Call {
    /// The provider's index. It is only a key, never an index in memory.
    index: Option<u64>,
    /// The position in the list of the fragment that began the call.
    slot: usize,
    /// The provider's id.
    given_id: Option<String>,
    /// The id that the conversation uses.
    id: String,
    name: String,
    arguments: String,
    end: JsonEnd,
    extras: Vec<(String, String)>,
    started: bool,
}

/// A piece of a call.
#[derive(Debug, Default)]
struct Fragment {
    index: Option<u64>,
    slot: usize,
    id: Option<String>,
    name: Option<String>,
    arguments: String,
    extras: Vec<(String, String)>,
}

/// The calls of one completion.
#[derive(Debug)]
pub(super) struct Calls {
    list: Vec<Call>,
    ids: CallIds,
    limit: usize,
}

/// The slot of the only call in the protocol's legacy form, `function_call`.
const LEGACY_SLOT: usize = usize::MAX;

impl Calls {
    /// Makes a collection of at most `limit` calls.
    pub(super) fn new(ids: Arc<dyn IdSource>, limit: usize) -> Self {
        Self {
            list: Vec::new(),
            ids: CallIds::new(ids),
            limit,
        }
    }

    /// Returns how many calls there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Reads an item of `tool_calls` at its position in the list. `whole`: the item is a complete
    /// call.
    pub(super) fn take(
        &mut self,
        item: &Fields<'_>,
        slot: usize,
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let function = item.object("function").or_else(|| item.object("custom"));
        let function = function.unwrap_or_default();
        let known = ["index", "id", "type", "function", "custom"];
        let extras = item.iter().filter(|(name, _)| !known.contains(name)).take(MOST_UNKNOWN);
        let fragment = Fragment {
            index: item.count("index"),
            slot,
            id: item.filled("id"),
            extras: extras
                .map(|(name, raw)| (name.to_owned(), raw.get().to_owned()))
                .collect(),
            ..Fragment::of_function(&function)
        };
        self.add(fragment, whole, events)
    }

    /// Reads a `function_call` of the protocol's legacy form. A completion has at most one.
    pub(super) fn take_legacy(&mut self, function: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let fragment = Fragment {
            slot: LEGACY_SLOT,
            ..Fragment::of_function(function)
        };
        self.add(fragment, false, events)
    }

    /// Returns the finished calls in the order in which they began.
    pub(super) fn finish(self) -> Result<Vec<ToolCall>, Fault> {
        self.list.into_iter().map(Call::finish).collect()
    }

    fn add(&mut self, fragment: Fragment, whole: bool, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let found = if whole { None } else { self.find(&fragment) };
        let position = match found {
            Some(position) => position,
            None if fragment.is_empty() => return Ok(()),
            None => self.begin(&fragment)?,
        };
        let call = &mut self.list[position];
        call.given_id = call.given_id.take().or(fragment.id);
        if call.name.is_empty() {
            call.name = fragment.name.unwrap_or_default();
        }
        for (name, raw) in fragment.extras {
            call.extras.retain(|(known, _)| *known != name);
            if call.extras.len() < MOST_UNKNOWN {
                call.extras.push((name, raw));
            }
        }
        call.end.push(&fragment.arguments);
        call.arguments.push_str(&fragment.arguments);
        let mut news = fragment.arguments;
        if !call.started && !call.name.is_empty() {
            call.started = true;
            events.push(ModelEvent::ToolCallStarted {
                index: position,
                id: call.id.clone(),
                name: call.name.clone(),
            });
            news.clone_from(&call.arguments);
        }
        if call.started && !news.is_empty() {
            events.push(ModelEvent::ToolCallDelta {
                index: position,
                arguments: news,
            });
        }
        Ok(())
    }

    /// Finds the call that the fragment continues.
    fn find(&self, fragment: &Fragment) -> Option<usize> {
        let last = |fits: &dyn Fn(&Call) -> bool| self.list.iter().rposition(fits);
        let position = match (&fragment.id, fragment.index) {
            (Some(id), index) => {
                let same_index = |call: &Call| call.index == index || call.index.is_none() || index.is_none();
                let named = last(&|call| call.given_id.as_ref() == Some(id) && same_index(call));
                if named.is_some() {
                    return named;
                }
                // A late id belongs to a call without an id. If the call has an id, another id
                // begins a new call.
                last(&|call| key_fits(call, fragment)).filter(|position| {
                    let call = &self.list[*position];
                    call.given_id.is_none() && (fragment.name.is_none() || call.name.is_empty())
                })
            }
            (None, _) => last(&|call| key_fits(call, fragment)),
        };
        position.filter(|position| !self.list[*position].is_over_before(fragment))
    }

    fn begin(&mut self, fragment: &Fragment) -> Result<usize, Fault> {
        if self.list.len() >= self.limit {
            return Err(Fault::TooManyCalls(self.limit));
        }
        let (index, id) = self.ids.next(fragment.id.clone());
        self.list.push(Call {
            index: fragment.index,
            slot: fragment.slot,
            id,
            ..Call::default()
        });
        Ok(index)
    }
}

fn key_fits(call: &Call, fragment: &Fragment) -> bool {
    match (call.index, fragment.index) {
        (Some(left), Some(right)) => left == right,
        _ => call.slot == fragment.slot,
    }
}

impl Fragment {
    fn of_function(function: &Fields<'_>) -> Self {
        let arguments = function
            .get("arguments")
            .or_else(|| function.get("input"))
            .map(|raw| wire::text(raw).unwrap_or_else(|| raw.get().to_owned()));
        Self {
            name: function.filled("name"),
            arguments: arguments.unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Returns whether the fragment is empty. Some servers add an empty call to a completion
    /// without calls.
    fn is_empty(&self) -> bool {
        self.id.is_none() && self.name.is_none() && matches!(self.arguments.trim(), "" | "{}")
    }
}

impl Call {
    /// Returns whether a fragment without an id begins another call: it has a name, and this call
    /// has another name or complete arguments.
    fn is_over_before(&self, fragment: &Fragment) -> bool {
        let Some(name) = &fragment.name else { return false };
        let other_name = !self.name.is_empty() && self.name != *name;
        let whole = self.end.is_reached();
        (whole && !fragment.arguments.trim().is_empty()) || (other_name && (whole || self.arguments.is_empty()))
    }

    fn finish(self) -> Result<ToolCall, Fault> {
        if self.name.is_empty() {
            return Err(Fault::NamelessCall);
        }
        // Unknown fields must return to the provider with the call, as one object.
        let extras = self.extras.iter().map(|(name, raw)| (name.as_str(), raw));
        let extras = (!self.extras.is_empty()).then(|| object_text(extras));
        Ok(ToolCall {
            id: self.id,
            name: self.name,
            arguments: self.arguments,
            signature: extras,
        })
    }
}

/// Detects in linear time when a text in pieces has become a whole JSON object.
#[derive(Debug, Default)]
struct JsonEnd {
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl JsonEnd {
    fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed = self.depth == 0;
                }
                _ => {}
            }
        }
    }

    fn is_reached(&self) -> bool {
        self.closed && self.depth == 0 && !self.in_string
    }
}
