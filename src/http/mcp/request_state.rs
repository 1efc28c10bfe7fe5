//! The `requestState` of a call that waits for answers: which run waits.
//!
//! The client could forge it, so it is signed. It is bound to the API key, or to the subject of the
//! token, and to the request that was made: the tool and its arguments. It expires with the open
//! calls.

use rmcp::ErrorData;
use rmcp::model::SealOptions;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::errors::invalid;
use super::server::McpServer;
use crate::http::problem::Problem;
use agent::record::RunRecord;
use values::clock::Timestamp;
use values::ids::RunId;
use values::json::{Object, canonical_bytes};

/// The caller and the request that a state is bound to.
#[derive(Debug)]
pub(super) struct Binding(Vec<u8>);

#[derive(Debug, Serialize, Deserialize)]
struct State {
    run_id: RunId,
    expires_at: Timestamp,
}

impl Binding {
    /// Binds to the caller and to a call of a tool.
    pub(super) fn new(server: &McpServer, tool: &str, arguments: Option<&Object>) -> Result<Self, ErrorData> {
        let call = &server.call;
        let bound = json!([call.tenant.as_str(), call.creator(), tool, arguments]);
        let bytes = canonical_bytes(&bound).map_err(|error| ErrorData::from(Problem::internal(error)))?;
        Ok(Self(bytes))
    }
}

/// Makes the state of a run that waits.
pub(super) fn seal(server: &McpServer, binding: &Binding, run: &RunRecord) -> Result<String, ErrorData> {
    let state = State {
        run_id: run.summary.run_id,
        expires_at: expires_at(run),
    };
    let options = SealOptions::new().associated_data(&binding.0);
    let sealed = server.settings.states.seal_json_with(&state, &options);
    sealed.map_err(|error| ErrorData::from(Problem::internal(error)))
}

/// Returns when the state of a run that waits expires: with the last of its open calls.
pub(super) fn expires_at(run: &RunRecord) -> Timestamp {
    let last = run.open_calls.iter().map(|call| call.expires_at).max();
    last.unwrap_or(run.summary.created_at)
}

/// Returns the run that waits, if the state is one of this service for this request.
pub(super) fn open(server: &McpServer, binding: &Binding, sealed: &str) -> Result<RunId, ErrorData> {
    let opened = server.settings.states.open_json_with(sealed, &binding.0);
    let state: State = opened.map_err(|error| {
        tracing::debug!(error = &error as &dyn std::error::Error, "a requestState was refused");
        invalid("this requestState was not made for this caller and this request: call the tool again without it")
    })?;
    if state.expires_at <= server.call.api.runs.clock.now() {
        return Err(invalid(
            "the requestState has expired, and so have the calls that it was about: call the tool again without it",
        ));
    }
    Ok(state.run_id)
}
