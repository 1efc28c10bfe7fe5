//! The events of a stream, as they are written.

use serde::Serialize;

use super::items::OutputItem;
use super::object::ResponseObject;
use crate::http::faces::openai::ids::ItemId;
use crate::http::faces::openai::parts::StoredPart;

/// An event of a stream.
#[derive(Debug, Serialize)]
pub(in crate::http) struct WireEvent {
    #[serde(rename = "type")]
    name: &'static str,
    sequence_number: u64,
    #[serde(flatten)]
    fields: EventFields,
}

/// The fields of an event, by its form.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum EventFields {
    /// Of the whole response.
    Response { response: Box<ResponseObject> },
    /// The beginning or the end of an item.
    Item { output_index: usize, item: OutputItem },
    /// The beginning or the end of a part.
    Part {
        #[serde(flatten)]
        at: ItemPointer,
        part: StoredPart,
    },
    /// A piece of a part or of arguments.
    Delta {
        #[serde(flatten)]
        at: ItemPointer,
        delta: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        logprobs: Option<[(); 0]>,
    },
    /// A whole text.
    Text {
        #[serde(flatten)]
        at: ItemPointer,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        logprobs: Option<[(); 0]>,
    },
    /// A whole refusal.
    Refusal {
        #[serde(flatten)]
        at: ItemPointer,
        refusal: String,
    },
    /// Whole arguments.
    Arguments {
        #[serde(flatten)]
        at: ItemPointer,
        name: String,
        arguments: String,
    },
    /// The progress of a call.
    Progress(ItemPointer),
}

/// Points to an item, or to its only part.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ItemPointer {
    pub(super) item_id: ItemId,
    pub(super) output_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary_index: Option<u32>,
}

impl WireEvent {
    pub(super) fn new(name: &'static str, sequence_number: u64, fields: EventFields) -> Self {
        Self {
            name,
            sequence_number,
            fields,
        }
    }

    /// Returns the type of the event.
    pub(in crate::http) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the number of the event in its stream, from 0.
    pub(in crate::http) fn sequence_number(&self) -> u64 {
        self.sequence_number
    }
}
