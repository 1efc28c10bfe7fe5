//! Writes the events of items. Each item begins once and ends once, before the next one begins, and
//! its events between these have the same id and index.

use std::collections::BTreeSet;

use super::events::{EventFields, ItemPointer, WireEvent};
use super::items::OutputItem;
use super::object::ResponseObject;
use crate::http::faces::openai::ids::ItemId;
use crate::http::faces::openai::parts::{ItemStatus, StoredPart};

/// Writes the events of a stream and numbers them.
#[derive(Debug, Default)]
pub(super) struct EventWriter {
    /// The number of events, and so the number of the next one.
    count: u64,
    /// The number of items that have begun.
    items: usize,
    /// The item that has begun and not ended.
    open: Option<OpenItem>,
    /// The items that have ended.
    done: BTreeSet<ItemId>,
    written: Vec<WireEvent>,
}

/// An item that has begun.
#[derive(Debug)]
struct OpenItem {
    output_index: usize,
    /// The item with the words so far.
    item: OutputItem,
}

impl EventWriter {
    /// Returns whether nothing was written yet.
    pub(super) fn is_new(&self) -> bool {
        self.count == 0
    }

    /// Continues after an event that a client has, if its number is higher.
    pub(super) fn skip(&mut self, last: u64) {
        self.count = self.count.max(last.saturating_add(1));
    }

    /// Returns whether an item has begun.
    pub(super) fn has_begun(&self, id: ItemId) -> bool {
        self.done.contains(&id) || self.open.as_ref().is_some_and(|open| open.item.id() == id)
    }

    /// Takes the events that were written.
    pub(super) fn take(&mut self) -> Vec<WireEvent> {
        std::mem::take(&mut self.written)
    }

    /// Writes an event of the whole response.
    pub(super) fn response(&mut self, name: &'static str, response: ResponseObject) {
        let response = Box::new(response);
        self.write(name, EventFields::Response { response });
    }

    /// Begins an item whose part is still empty. The item before it must have ended.
    pub(super) fn begin(&mut self, item: OutputItem) {
        let output_index = self.write_begun(&item);
        self.open = Some(OpenItem { output_index, item });
    }

    /// Adds words to an item, unless it has ended.
    pub(super) fn add(&mut self, id: ItemId, words: &str) {
        let Some(open) = self.open.as_mut().filter(|open| open.item.id() == id) else {
            return;
        };
        open.item.push(words);
        let output_index = open.output_index;
        if let Some(names) = open.item.part().map(PartNames::of) {
            self.write_words(&names, names.pointer(id, output_index), words);
        }
    }

    /// Ends an item, and begins it before that if necessary. An item that has ended stays as it is.
    pub(super) fn finish(&mut self, item: OutputItem) {
        let id = item.id();
        if !self.done.insert(id) {
            return;
        }
        let output_index = match self.open.take_if(|open| open.item.id() == id) {
            Some(open) => open.output_index,
            None => self.write_contents(&item),
        };
        if let Some(part) = item.part().cloned() {
            self.write_end_of_part(id, output_index, part);
        }
        let fields = EventFields::Item { output_index, item };
        self.write("response.output_item.done", fields);
    }

    /// Ends the item in progress, unless it is part of the output.
    pub(super) fn abandon(&mut self, output: &[OutputItem]) {
        let is_lost = |item: &&OutputItem| output.iter().all(|other| other.id() != item.id());
        let lost = self.open.as_ref().map(|open| &open.item).filter(is_lost);
        if let Some(item) = lost.cloned() {
            self.finish(item.abandoned());
        }
    }

    /// Writes the beginning of an item, and of its part. Returns the index of the item.
    fn write_begun(&mut self, item: &OutputItem) -> usize {
        let output_index = self.items;
        self.items += 1;
        let fields = EventFields::Item {
            output_index,
            item: item.begun(),
        };
        self.write("response.output_item.added", fields);
        if let Some(part) = item.part() {
            let names = PartNames::of(part);
            let at = names.pointer(item.id(), output_index);
            let part = emptied(part);
            self.write(names.part_added, EventFields::Part { at, part });
        }
        output_index
    }

    /// Writes the beginning and the contents of an item. Returns its index.
    fn write_contents(&mut self, item: &OutputItem) -> usize {
        let output_index = self.write_begun(item);
        let at = ItemPointer {
            item_id: item.id(),
            output_index,
            content_index: None,
            summary_index: None,
        };
        if let Some(part) = item.part() {
            let names = PartNames::of(part);
            self.write_words(&names, names.pointer(item.id(), output_index), words_of(part));
        }
        match item {
            OutputItem::FunctionCall(call) => {
                let names = [
                    "response.function_call_arguments.delta",
                    "response.function_call_arguments.done",
                ];
                self.write_arguments(names, at, &call.name, &call.arguments);
            }
            OutputItem::McpCall(call) => {
                self.write("response.mcp_call.in_progress", EventFields::Progress(at));
                let names = ["response.mcp_call_arguments.delta", "response.mcp_call_arguments.done"];
                self.write_arguments(names, at, &call.name, &call.arguments);
                let end = if call.status == ItemStatus::Failed {
                    "response.mcp_call.failed"
                } else {
                    "response.mcp_call.completed"
                };
                self.write(end, EventFields::Progress(at));
            }
            OutputItem::Message(_) | OutputItem::Reasoning(_) | OutputItem::McpApprovalRequest(_) => (),
        }
        output_index
    }

    fn write_words(&mut self, names: &PartNames, at: ItemPointer, words: &str) {
        let fields = EventFields::Delta {
            at,
            delta: words.to_owned(),
            logprobs: names.logprobs,
        };
        self.write(names.delta, fields);
    }

    fn write_arguments(&mut self, [delta, done]: [&'static str; 2], at: ItemPointer, name: &str, arguments: &str) {
        let piece = EventFields::Delta {
            at,
            delta: arguments.to_owned(),
            logprobs: None,
        };
        self.write(delta, piece);
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        self.write(done, EventFields::Arguments { at, name, arguments });
    }

    fn write_end_of_part(&mut self, id: ItemId, output_index: usize, part: StoredPart) {
        let names = PartNames::of(&part);
        let at = names.pointer(id, output_index);
        let text = words_of(&part).to_owned();
        let fields = match &part {
            StoredPart::Refusal { .. } => EventFields::Refusal { at, refusal: text },
            _ => EventFields::Text {
                at,
                text,
                logprobs: names.logprobs,
            },
        };
        self.write(names.done, fields);
        self.write(names.part_done, EventFields::Part { at, part });
    }

    fn write(&mut self, name: &'static str, fields: EventFields) {
        self.written.push(WireEvent::new(name, self.count, fields));
        self.count += 1;
    }
}

/// The names of the events of a part.
struct PartNames {
    part_added: &'static str,
    delta: &'static str,
    done: &'static str,
    part_done: &'static str,
    logprobs: Option<[(); 0]>,
    is_summary: bool,
}

impl PartNames {
    fn of(part: &StoredPart) -> Self {
        let of_content = Self {
            part_added: "response.content_part.added",
            delta: "response.output_text.delta",
            done: "response.output_text.done",
            part_done: "response.content_part.done",
            logprobs: Some([]),
            is_summary: false,
        };
        match part {
            StoredPart::Refusal { .. } => Self {
                delta: "response.refusal.delta",
                done: "response.refusal.done",
                logprobs: None,
                ..of_content
            },
            StoredPart::SummaryText { .. } => Self {
                part_added: "response.reasoning_summary_part.added",
                delta: "response.reasoning_summary_text.delta",
                done: "response.reasoning_summary_text.done",
                part_done: "response.reasoning_summary_part.done",
                logprobs: None,
                is_summary: true,
            },
            _ => of_content,
        }
    }

    /// Points to the part. An item has only one.
    fn pointer(&self, item_id: ItemId, output_index: usize) -> ItemPointer {
        ItemPointer {
            item_id,
            output_index,
            content_index: (!self.is_summary).then_some(0),
            summary_index: self.is_summary.then_some(0),
        }
    }
}

fn words_of(part: &StoredPart) -> &str {
    match part {
        StoredPart::OutputText { text, .. } | StoredPart::SummaryText { text } => text,
        StoredPart::Refusal { refusal } => refusal,
        _ => "",
    }
}

/// Returns the part before its words have arrived.
fn emptied(part: &StoredPart) -> StoredPart {
    let mut part = part.clone();
    if let StoredPart::OutputText { text, .. }
    | StoredPart::SummaryText { text }
    | StoredPart::Refusal { refusal: text } = &mut part
    {
        text.clear();
    }
    part
}
