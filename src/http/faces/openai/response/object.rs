//! The response object.

use std::sync::Arc;

use serde::Serialize;

use super::items::OutputItem;
use super::projection::{Projection, ResponseSettings};
use super::status::{IncompleteDetails, ResponseError, ResponseStatus, status_of};
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::failure::Failure;
use crate::http::faces::openai::ids::response_id;
use crate::http::faces::turn::Turn;
use crate::run::read::RunMessages;
use agent::record::{RunRecord, RunSummary};
use values::ids::{RunId, SessionId};
use values::json::Value;
use values::model_ref::ModelRef;
use values::usage::{Cost, Usage};

/// A response. Open Responses requires all of its fields, except the service's own.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ResponseObject {
    id: String,
    object: &'static str,
    created_at: i64,
    /// Only of a response that is complete.
    completed_at: Option<i64>,
    status: ResponseStatus,
    incomplete_details: Option<IncompleteDetails>,
    error: Option<ResponseError>,
    output: Vec<OutputItem>,
    usage: Option<ResponseUsage>,
    #[serde(flatten)]
    echo: Arc<Echo>,
    agent_runtime: RuntimeDetails,
}

/// The usage of all steps of a run.
#[derive(Debug, Serialize)]
struct ResponseUsage {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Debug, Serialize)]
struct InputDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Debug, Serialize)]
struct OutputDetails {
    reasoning_tokens: u64,
}

/// What OpenAI's API has no fields for.
#[derive(Debug, Serialize)]
struct RuntimeDetails {
    run_id: RunId,
    /// The session that the run has published.
    session_id: Option<SessionId>,
    /// The model that responded last.
    answered_by: Option<ModelRef>,
    /// The cost in US dollars; null if it is not known.
    cost: Option<Cost>,
}

/// Makes the response of a run.
pub(in crate::http) fn response_of(
    record: &RunRecord,
    turn: &Turn,
    echo: &Arc<Echo>,
    settings: &ResponseSettings,
) -> ResponseObject {
    let projection = Projection {
        run_id: record.summary.run_id,
        echo,
        settings,
    };
    ResponseObject::of_record(record, projection.output(turn, record), echo)
}

/// Makes the items of the output of a run, as its response shows them.
pub(in crate::http) fn output_items(messages: &RunMessages, settings: &ResponseSettings) -> Vec<Value> {
    let record = &messages.record;
    let projection = Projection {
        run_id: record.summary.run_id,
        echo: &Echo::of_stored(record.echo.as_deref()),
        settings,
    };
    let output = projection.output(&Turn::of_stored(messages), record);
    // Only maps with other keys than texts can't be written, and an item has none.
    let items = output.iter().map(|item| serde_json::to_value(item).unwrap_or_default());
    items.collect()
}

impl ResponseObject {
    /// Makes the response of a run that has begun. It depends on nothing that changes later.
    pub(super) fn begun(run: &RunSummary, status: ResponseStatus, echo: &Arc<Echo>) -> Self {
        Self {
            id: response_id(run.run_id),
            object: "response",
            created_at: run.created_at.timestamp(),
            completed_at: None,
            status,
            incomplete_details: None,
            error: None,
            output: Vec::new(),
            usage: None,
            echo: named(echo, run),
            agent_runtime: RuntimeDetails {
                run_id: run.run_id,
                session_id: None,
                answered_by: None,
                cost: None,
            },
        }
    }

    /// Makes the response of a stream that ends before its run.
    pub(super) fn dropped(run: &RunSummary, failure: Failure<'_>, echo: &Arc<Echo>) -> Self {
        Self {
            error: Some(ResponseError::of_failure(failure)),
            ..Self::begun(run, ResponseStatus::Failed, echo)
        }
    }

    /// Makes the response of a run with its items.
    pub(super) fn of_record(record: &RunRecord, output: Vec<OutputItem>, echo: &Arc<Echo>) -> Self {
        let run = &record.summary;
        let status = status_of(record);
        let begun = Self::begun(run, status, echo);
        if !run.status.is_terminal() {
            return Self { output, ..begun };
        }
        let completed_at = run.completed_at.filter(|_| status == ResponseStatus::Completed);
        Self {
            completed_at: completed_at.map(|time| time.timestamp()),
            incomplete_details: IncompleteDetails::of_record(record),
            error: ResponseError::of_record(record),
            output,
            usage: Some(ResponseUsage::from(&run.usage)),
            agent_runtime: RuntimeDetails {
                session_id: run.has_session().then_some(run.session_id),
                answered_by: run.answered_by.clone(),
                cost: run.usage.cost,
                ..begun.agent_runtime
            },
            ..begun
        }
    }

    /// Returns the status.
    pub(super) fn status(&self) -> ResponseStatus {
        self.status
    }
}

/// Returns the echo of a run. Without a request of this protocol, the model is the agent.
fn named(echo: &Arc<Echo>, run: &RunSummary) -> Arc<Echo> {
    let mut echo = Arc::clone(echo);
    if echo.model.is_empty() {
        Arc::make_mut(&mut echo).model.clone_from(&run.agent);
    }
    echo
}

impl From<&Usage> for ResponseUsage {
    fn from(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            input_tokens_details: InputDetails {
                cached_tokens: usage.cache_read_tokens,
                cache_write_tokens: usage.cache_write_tokens,
            },
            output_tokens: usage.output_tokens,
            output_tokens_details: OutputDetails {
                reasoning_tokens: usage.reasoning_tokens,
            },
            total_tokens: usage.total_tokens,
        }
    }
}
