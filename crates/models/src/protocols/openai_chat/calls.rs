//! Assembles tool calls from fragments. Servers number, name and identify fragments in many ways.
//! No call may be lost or duplicated.
//!
//! The index identifies a call, then the id. Some servers give each fragment a new id, repeat the
//! name, or repeat the arguments so far. Others give all calls the same index: there, a name after
//! complete arguments begins a call.

use std::sync::Arc;

use crate::calls::{CALL_FIELDS, CallIds, arguments_of, is_same, news};
use crate::fault::Fault;
use crate::fields::{Fields, MOST_UNKNOWN, object_text};
use agent::ports::ModelEvent;
use values::ids::IdSource;
use values::message::ToolCall;

/// A call under construction.
#[derive(Debug, Default)]
struct Call {
    /// The number of its choice.
    choice: u64,
    /// The provider's index. It is only a key, never an index in memory.
    index: Option<u64>,
    /// The position in the list of the fragment that began the call.
    slot: usize,
    /// The provider's first id.
    given_id: Option<String>,
    /// Whether its fragments have several ids, so that another id means nothing.
    ids_change: bool,
    /// The id that the conversation uses.
    id: String,
    name: String,
    arguments: String,
    end: JsonEnd,
    extras: Vec<(String, String)>,
    started: bool,
    /// Whether it began as a whole call.
    whole: bool,
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
    /// Whether nothing of it could be read.
    is_unknown: bool,
}

/// The calls of one completion.
#[derive(Debug)]
pub(super) struct Calls {
    list: Vec<Call>,
    /// The choice of the message that is being read.
    choice: u64,
    /// The number of calls before this message.
    before: usize,
    ids: CallIds,
    limit: usize,
}

/// The index of the only call in the protocol's legacy form, `function_call`.
const LEGACY_INDEX: u64 = u64::MAX;

impl Calls {
    /// Makes a collection of at most `limit` calls.
    pub(super) fn new(ids: Arc<dyn IdSource>, limit: usize) -> Self {
        Self {
            list: Vec::new(),
            choice: 0,
            before: 0,
            ids: CallIds::new(ids),
            limit,
        }
    }

    /// Returns how many calls there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether the arguments of a call are not complete.
    pub(super) fn has_open(&self) -> bool {
        self.list.iter().any(|call| !call.end.is_reached())
    }

    /// Begins to read a message of a choice.
    pub(super) fn begin_message(&mut self, choice: u64) {
        (self.choice, self.before) = (choice, self.list.len());
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
        let is_known = |name: &str| name == "custom" || CALL_FIELDS.contains(&name);
        let extras = item.iter().filter(|(name, _)| !is_known(name)).take(MOST_UNKNOWN);
        let extras: Vec<_> = extras
            .map(|(name, raw)| (name.to_owned(), raw.get().to_owned()))
            .collect();
        let number = || item.text("index")?.trim().parse::<u64>().ok();
        let fragment = Fragment {
            index: item.count("index").or_else(number),
            slot,
            id: item.filled("id").or_else(|| item.filled("call_id")),
            is_unknown: function.is_none() && !extras.is_empty(),
            extras,
            // Some servers write the call without an object around it.
            ..Fragment::of_function(function.as_ref().unwrap_or(item))
        };
        self.add(fragment, whole, events)
    }

    /// Reads a `function_call` of the protocol's legacy form. A completion has at most one. Some
    /// servers send the same call in both forms.
    pub(super) fn take_legacy(&mut self, function: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let fragment = Fragment {
            index: Some(LEGACY_INDEX),
            ..Fragment::of_function(function)
        };
        let mut own = self.list.iter().filter(|call| call.choice == self.choice);
        let is_like = |call: &Call| fragment.name.as_ref().is_none_or(|name| *name == call.name);
        if own.clone().all(|call| call.index != Some(LEGACY_INDEX)) && own.any(is_like) {
            return Ok(());
        }
        self.add(fragment, false, events)
    }

    /// Returns the finished calls in the order in which they began.
    pub(super) fn finish(self) -> Result<Vec<ToolCall>, Fault> {
        self.list.into_iter().map(Call::finish).collect()
    }

    fn add(&mut self, fragment: Fragment, whole: bool, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let position = match self.find(&fragment, whole) {
            Some(position) => position,
            None if !fragment.is_empty() => self.begin(&fragment, whole)?,
            None if fragment.is_unknown => return Err(Fault::Unreadable),
            None => return Ok(()),
        };
        let call = &mut self.list[position];
        if call.is_legacy() {
            call.index = fragment.index;
        }
        call.ids_change |= call.has_other_id(&fragment);
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
        let mut news = news(&call.arguments, fragment.arguments);
        call.end.push(&news);
        call.arguments.push_str(&news);
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

    /// Finds the call that the fragment continues or repeats. A whole call repeats a call with its
    /// id, or a call of an earlier message.
    fn find(&self, fragment: &Fragment, whole: bool) -> Option<usize> {
        let last_of = |among: &[Call], fits: &dyn Fn(&Call) -> bool| {
            among.iter().rposition(|call| call.choice == self.choice && fits(call))
        };
        let last = |fits: &dyn Fn(&Call) -> bool| last_of(&self.list, fits);
        if whole {
            let same_id = last(&|call| call.has_id_of(fragment) && call.is_repeated_by(fragment));
            return same_id.or_else(|| last_of(&self.list[..self.before], &|call| call.is_repeated_by(fragment)));
        }
        if let Some(position) = last(&|call| call.is_listed_again(fragment)) {
            return Some(position);
        }
        let same_index = |call: &Call| {
            call.index == fragment.index || call.index.is_none() || fragment.index.is_none() || call.is_legacy()
        };
        let found = last(&|call| call.has_id_of(fragment) && same_index(call))
            .or_else(|| last(&|call| key_fits(call, fragment)));
        found.filter(|position| !self.list[*position].is_over_before(fragment))
    }

    fn begin(&mut self, fragment: &Fragment, whole: bool) -> Result<usize, Fault> {
        if self.list.len() >= self.limit {
            return Err(Fault::TooManyCalls(self.limit));
        }
        let (index, id) = self.ids.next(fragment.id.clone());
        self.list.push(Call {
            choice: self.choice,
            index: fragment.index,
            slot: fragment.slot,
            id,
            whole,
            ..Call::default()
        });
        Ok(index)
    }
}

fn key_fits(call: &Call, fragment: &Fragment) -> bool {
    match (call.index, fragment.index) {
        (Some(left), Some(right)) if !call.is_legacy() => left == right,
        _ => call.slot == fragment.slot,
    }
}

impl Fragment {
    fn of_function(function: &Fields<'_>) -> Self {
        Self {
            name: function.filled("name"),
            arguments: arguments_of(function).unwrap_or_default(),
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
    fn has_id_of(&self, fragment: &Fragment) -> bool {
        fragment.id.is_some() && self.given_id == fragment.id
    }

    /// Returns whether the fragment has an id that distinguishes it from this call.
    fn has_other_id(&self, fragment: &Fragment) -> bool {
        self.given_id.is_some() && fragment.id.is_some() && self.given_id != fragment.id
    }

    /// Returns whether the call has only the legacy form so far.
    fn is_legacy(&self) -> bool {
        self.index == Some(LEGACY_INDEX)
    }

    /// Returns whether a fragment with the key of this call begins another call. It needs a name.
    fn is_over_before(&self, fragment: &Fragment) -> bool {
        let Some(name) = fragment.name.as_ref().filter(|_| !self.name.is_empty()) else {
            return false;
        };
        let has_other_id = !self.ids_change && self.has_other_id(fragment);
        let is_whole = self.end.is_reached();
        if self.name != *name {
            return is_whole || self.arguments.is_empty() || has_other_id;
        }
        if fragment.arguments.trim().is_empty() {
            return has_other_id && (is_whole || self.arguments.is_empty());
        }
        // Without a number and an id, only two calls can have the same arguments.
        let is_same_call = self.has_id_of(fragment) || self.ids_change || fragment.index.is_some();
        is_whole && (has_other_id || !is_same_call || !self.has_arguments(&fragment.arguments))
    }

    /// Returns whether a whole call is this one again. A call with another id repeats a call of the
    /// stream if it has the same arguments.
    fn is_repeated_by(&self, fragment: &Fragment) -> bool {
        if fragment.name.as_ref() != Some(&self.name) {
            return false;
        }
        let may_differ = self.ids_change || !self.has_other_id(fragment);
        (may_differ && fragment.arguments.starts_with(&self.arguments))
            || ((may_differ || !self.whole) && self.has_arguments(&fragment.arguments))
    }

    /// Returns whether a complete call without a number and an id is this one, which has a number.
    fn is_listed_again(&self, fragment: &Fragment) -> bool {
        let is_listed = fragment.index.is_none() && fragment.id.is_none() && self.index.is_some();
        is_listed && fragment.name.as_ref() == Some(&self.name) && self.has_arguments(&fragment.arguments)
    }

    /// Returns whether the arguments are complete, and the same value as these.
    fn has_arguments(&self, other: &str) -> bool {
        is_same(&self.arguments, other)
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
