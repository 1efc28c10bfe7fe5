//! Threads as clients read them.

use serde::Serialize;
use serde_json::json;

use super::partial_answers::shown;
use super::states::head_of;
use crate::http::chat_history::ChatOutline;
use crate::http::chat_thread::ChatThread;
use crate::http::faces::langgraph::ThreadState;
use crate::http::problem::Problem;
use agent::record::{RunRecord, RunStatus, ThreadRecord};
use tasks::fair_share::Share;
use values::clock::Timestamp;
use values::json::{Object, Value};
use values::session::RunOutcome;

/// A thread.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ThreadView {
    thread_id: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    metadata: Object,
    pub(super) status: &'static str,
    config: Object,
    values: Value,
    interrupts: Object,
}

impl ThreadView {
    /// Makes the view of a thread with its values.
    pub(super) async fn read(thread: &ChatThread<'_>, record: Option<ThreadRecord>) -> Result<(Share, Self), Problem> {
        let outline = ChatOutline::read(thread).await?.without_cancelled();
        let status = status_of(thread, outline.asking(), record.as_ref()).await?;
        let now = thread.call.api.runs.clock.now();
        let (share, head) = head_of(thread, outline).await?;
        let state = json!(ThreadState::new(thread.name.as_str(), head));
        let interrupts = &state["tasks"][0]["interrupts"];
        let waiting = interrupts.as_array().filter(|all| !all.is_empty());
        let task = state["tasks"][0]["id"].as_str().unwrap_or_default();
        let interrupts = waiting.map(|all| (task.to_owned(), Value::from(all.clone())));
        let view = Self {
            interrupts: interrupts.into_iter().collect(),
            values: state["values"].clone(),
            ..Self::new(thread, record, status, now)
        };
        Ok((share, view))
    }

    /// Makes the view of a thread in a list: its values have the first message of the user alone.
    pub(super) async fn listed(thread: &ChatThread<'_>, record: ThreadRecord) -> Result<Self, Problem> {
        let newest = thread.newest_run(&[]).await?;
        let status = status_of(thread, newest.as_ref(), Some(&record)).await?;
        let (runs, tenant) = (&thread.call.api.runs, &thread.call.tenant);
        let tip = match record.session_id {
            Some(session_id) => runs.store.session_lookup(tenant, session_id).await?,
            None => None,
        };
        let first = match tip {
            Some(tip) => runs.store.session_lookup(tenant, tip.root_session_id).await?,
            None => None,
        };
        let preview = record.title.clone().or(first.and_then(|first| first.preview));
        let values = preview.map_or(
            Value::Null,
            |text| json!({"messages": [{"type": "human", "id": "preview", "content": text}]}),
        );
        let now = record.created_at;
        Ok(Self {
            values,
            ..Self::new(thread, Some(record), status, now)
        })
    }

    fn new(thread: &ChatThread<'_>, record: Option<ThreadRecord>, status: &'static str, now: Timestamp) -> Self {
        let times = record
            .as_ref()
            .map_or((now, now), |record| (record.created_at, record.updated_at));
        Self {
            thread_id: thread.name.to_string(),
            created_at: times.0,
            updated_at: times.1,
            metadata: record.map_or_else(Object::new, |record| shown(record.metadata)),
            status,
            config: Object::new(),
            values: Value::Null,
            interrupts: Object::new(),
        }
    }
}

/// Returns the status of a thread. `newest` is its newest run, or the one with an open question.
async fn status_of(
    thread: &ChatThread<'_>,
    newest: Option<&RunRecord>,
    record: Option<&ThreadRecord>,
) -> Result<&'static str, Problem> {
    let tip = record.and_then(|record| record.session_id);
    if let Some(run) = newest {
        let run = &run.summary;
        if !run.status.is_terminal() {
            return Ok("busy");
        }
        if run.status == RunStatus::Failed && run.base_session_id == tip {
            return Ok("error");
        }
    }
    let head = match tip {
        Some(tip) => {
            thread
                .call
                .api
                .runs
                .store
                .session_lookup(&thread.call.tenant, tip)
                .await?
        }
        None => None,
    };
    let waits = head.is_some_and(|head| head.run_status == Some(RunOutcome::Waiting));
    Ok(if waits { "interrupted" } else { "idle" })
}
