//! A function call under construction.

use super::partial_text::{Fragment, PartialText};
use crate::calls::{CALL_FIELDS, CallIds, arguments_of, is_json, is_same, news};
use crate::fault::Fault;
use crate::fields::{Fields, MOST_UNKNOWN, unknown_fields};
use agent::ports::ModelEvent;
use values::message::ToolCall;

/// A call under construction.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// The index and the id of the announced call.
    announced: Option<(usize, String)>,
    given_id: Option<String>,
    name: String,
    arguments: PartialText,
    extras: Option<String>,
}

/// A whole call, which may repeat another one.
pub(super) struct Whole {
    id: Option<String>,
    name: String,
    arguments: String,
}

impl Whole {
    /// Reads an item; `None` if it has no name.
    pub(super) fn of(item: &Fields<'_>) -> Option<Self> {
        Some(Self {
            id: id_of(item),
            name: item.filled("name")?,
            arguments: arguments_of(item).unwrap_or_default(),
        })
    }
}

impl Call {
    /// Reads the item that announces the call. Its arguments follow later. A call with the id of
    /// another one is not emitted yet, since it may repeat that one.
    pub(super) fn announce(&mut self, item: &Fields<'_>, call_ids: &mut CallIds, events: &mut Vec<ModelEvent>) {
        self.read(item);
        if !self.given_id.as_deref().is_some_and(|id| call_ids.is_used(id)) {
            self.start(call_ids, events);
        }
    }

    fn read(&mut self, item: &Fields<'_>) {
        if let Some(name) = item.filled("name") {
            self.name = name;
        }
        self.given_id = self.given_id.take().or_else(|| id_of(item));
    }

    /// Emits the beginning of the call and its arguments so far, if it has a name.
    pub(super) fn start(&mut self, call_ids: &mut CallIds, events: &mut Vec<ModelEvent>) {
        if self.announced.is_none() && !self.name.is_empty() {
            let (index, id) = call_ids.next(self.given_id.clone());
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
        let fragment = match fragment {
            Fragment::Piece(piece) => Fragment::Piece(news(self.arguments.received(), piece)),
            whole @ Fragment::Whole(_) => whole,
        };
        let added = self.arguments.take(fragment);
        self.emit(added, events);
    }

    /// Takes the whole item.
    pub(super) fn complete(&mut self, item: &Fields<'_>, call_ids: &mut CallIds, events: &mut Vec<ModelEvent>) {
        self.read(item);
        self.start(call_ids, events);
        let arguments = arguments_of(item).unwrap_or_default();
        self.take_arguments(Fragment::Whole(arguments), events);
        self.extras = unknown_fields(item, &CALL_FIELDS, MOST_UNKNOWN);
    }

    /// Returns whether the call was emitted.
    pub(super) fn is_started(&self) -> bool {
        self.announced.is_some()
    }

    /// Returns whether the arguments are complete.
    pub(super) fn has_whole_arguments(&self) -> bool {
        is_json(self.arguments.text())
    }

    /// Returns whether a whole call is this one, which was emitted, again.
    pub(super) fn is_repeated_by(&self, whole: &Whole) -> bool {
        self.has_id(whole.id.as_ref()) && self.is_like(whole)
    }

    /// Returns whether a whole call has the name and the arguments of this one, which was emitted.
    pub(super) fn is_like(&self, whole: &Whole) -> bool {
        self.is_started() && self.name == whole.name && self.has_arguments(&whole.arguments)
    }

    /// Returns whether a call that was not emitted yet is this one again.
    pub(super) fn is_again(&self, other: &Self) -> bool {
        self.has_id(other.given_id.as_ref()) && self.name == other.name && self.has_arguments(other.arguments.text())
    }

    fn has_id(&self, id: Option<&String>) -> bool {
        self.announced.as_ref().is_some_and(|(_, own)| Some(own) == id)
    }

    fn has_arguments(&self, other: &str) -> bool {
        self.arguments.text() == other || is_same(self.arguments.text(), other)
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

fn id_of(item: &Fields<'_>) -> Option<String> {
    item.filled("call_id").or_else(|| item.filled("id"))
}
