//! Starts runs for tools and for tasks.

use rmcp::ErrorData;

use super::errors::error_of;
use super::request_state::expires_at;
use super::run_request::answering_run;
use super::server::McpServer;
use crate::http::problem::Problem;
use crate::run::{self, RequestKey, RunHandle, RunRequest};
use agent::answers::Answers;
use agent::record::{RunMode, RunRecord};
use values::json::canonical_bytes;
use values::session::hash_content;

/// Makes the request for the run that answers the open calls of another one. The key lets one set
/// of answers win, and a repeated request get the same run for as long as its state is valid.
pub(super) fn answering(
    server: &McpServer,
    run: &RunRecord,
    answers: Answers,
    mode: RunMode,
) -> Result<RunRequest, ErrorData> {
    let bytes = canonical_bytes(&answers).map_err(|error| ErrorData::from(Problem::internal(error)))?;
    let key = RequestKey {
        // No key of a caller has a space, so no caller can take it.
        key: format!("mcp answers {}", run.summary.run_id),
        digest: hash_content(&bytes),
        valid_until: Some(expires_at(run)),
    };
    Ok(answering_run(&server.call, run, answers, key, mode))
}

/// Starts a run. The inner error is for the caller, the outer one for the log.
pub(super) async fn start(server: &McpServer, request: RunRequest) -> Result<Result<RunHandle, Problem>, ErrorData> {
    let call = &server.call;
    let started = run::start(&call.api.runs, call.tenant.clone(), request).await;
    match started.map_err(Problem::from) {
        Ok(handle) => Ok(Ok(handle)),
        Err(problem) if problem.cause_chain().is_some() => Err(error_of(&problem)),
        Err(problem) => Ok(Err(problem)),
    }
}
