//! The parts and the statuses of items.

use serde::Serialize;

/// The status of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ItemStatus {
    InProgress,
    Completed,
    /// The item was cut, or another attempt of the run does not have it.
    Incomplete,
    /// The call has ended with an error.
    Failed,
}

/// A part of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum StoredPart {
    InputText {
        text: String,
    },
    OutputText {
        text: String,
        annotations: [(); 0],
        logprobs: [(); 0],
    },
    Refusal {
        refusal: String,
    },
    SummaryText {
        text: String,
    },
    InputImage {
        image_url: Option<String>,
        file_id: Option<String>,
        detail: String,
    },
    InputFile {
        file_url: Option<String>,
        file_data: Option<String>,
        file_id: Option<String>,
        filename: Option<String>,
    },
}
