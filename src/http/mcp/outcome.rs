//! The results of runs as results of tools.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

use super::server::McpServer;
use crate::http::in_flight::SMALL;
use crate::http::problem::Problem;
use agent::record::{RequiredActionView, RunRecord, RunStatus};
use values::json::json_length;

/// How often a result has the texts of a run in memory: as text, as a value and as JSON.
const COPIES: usize = 4;

/// Makes the result of a run that has ended, or that goes on without this process. Holds room for a
/// large one until it has been sent.
pub(super) async fn result_of(server: &McpServer, run: &RunRecord) -> CallToolResult {
    hold_room(server, run).await;
    let text = run.output_text();
    match run.summary.status {
        RunStatus::Completed | RunStatus::Stopped => with_value(run, text.clone(), &text),
        RunStatus::Waiting => waiting(run, &text),
        RunStatus::Answered => failure(run, "another run has answered the calls of the run".to_owned()),
        RunStatus::Failed => {
            let error = run.summary.error.as_ref();
            let words = error.map_or_else(
                || "the run failed".to_owned(),
                |error| format!("{}: {}", error.code, error.message),
            );
            failure(run, words)
        }
        RunStatus::Cancelled => failure(run, "the run was cancelled".to_owned()),
        RunStatus::Queued | RunStatus::Running => {
            let words = "the run goes on without this connection: GET /v1/runs/{run_id} shows its end";
            failure(run, words.to_owned())
        }
    }
}

/// Holds room for the response of a large run until it has been sent. Returns the bytes of its
/// texts.
pub(super) async fn hold_room(server: &McpServer, run: &RunRecord) -> usize {
    let bytes = run.output_text().len() + json_length(&run.value) + json_length(&run.open_calls);
    if bytes > SMALL && !server.holds_room() {
        let call = &server.call;
        server.hold(call.api.in_flight.take(&call.tenant, bytes * COPIES).await);
    }
    bytes
}

/// Makes the result of a request that was refused. A model may correct it, or try again.
pub(super) fn refusal(problem: &Problem) -> CallToolResult {
    tool_error(format!("{}: {}", problem.code().as_str(), problem.detail()))
}

/// Makes a result that a model can correct.
pub(super) fn tool_error(words: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(words.into())])
}

/// Makes the result of a run whose open calls this client can't be asked about.
fn waiting(run: &RunRecord, text: &str) -> CallToolResult {
    let words = format!(
        "The run waits for answers to {} calls: POST /v1/runs/{}/answers takes them.",
        run.open_calls.len(),
        run.summary.run_id
    );
    with_value(run, words, text)
}

fn with_value(run: &RunRecord, words: String, output: &str) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(words)]);
    let mut value = json!({
        "run_id": run.summary.run_id,
        "session_id": run.summary.session_id,
        "status": run.summary.status,
        "output": output,
    });
    if let Some(object) = value.as_object_mut() {
        object.extend(run.value.clone().map(|value| ("value".to_owned(), value)));
        let action = RequiredActionView::new(&run.open_calls).map(|action| json!(action));
        object.extend(action.map(|action| ("required_action".to_owned(), action)));
    }
    result.structured_content = Some(value);
    result
}

/// A run that failed has published no session.
fn failure(run: &RunRecord, words: String) -> CallToolResult {
    let mut value = json!({"run_id": run.summary.run_id, "status": run.summary.status});
    if let (Some(object), Some(error)) = (value.as_object_mut(), &run.summary.error) {
        object.insert(
            "error".to_owned(),
            json!({"code": error.code, "message": error.message}),
        );
    }
    let mut result = tool_error(words);
    result.structured_content = Some(value);
    result
}
