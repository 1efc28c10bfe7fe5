//! JSON responses of these routes, and the ids of responses in paths.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use serde::Serialize;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::described_schemas::any_object;
use crate::http::faces::openai::ids::{parse_response_id, response_id};
use crate::http::faces::openai::request::{Opener, shortened};
use crate::http::observe::StartedRun;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use values::ids::RunId;

/// Names the response that a request has started, also if it failed.
const RESPONSE_ID: HeaderName = HeaderName::from_static("x-response-id");

/// An object of OpenAI's API, in the description of this one.
#[derive(Debug)]
pub(super) struct OpenAiObject;

impl PartialSchema for OpenAiObject {
    fn schema() -> RefOr<Schema> {
        any_object("An object as OpenAI describes it.")
    }
}

impl ToSchema for OpenAiObject {}

/// An object that was deleted.
#[derive(Debug, Serialize)]
pub(super) struct DeletedObject {
    id: String,
    object: &'static str,
    deleted: bool,
}

impl DeletedObject {
    /// Makes the object of a type.
    pub(super) fn new(object: &'static str, id: String) -> Self {
        let deleted = true;
        Self { id, object, deleted }
    }
}

/// Names the run that a request has started.
pub(super) fn mark_started(response: &mut Response, run_id: RunId) {
    response.extensions_mut().insert(StartedRun(run_id));
    if let Ok(id) = HeaderValue::from_str(&response_id(run_id)) {
        response.headers_mut().insert(RESPONSE_ID, id);
    }
}

/// Returns the run of the response that a path names.
pub(super) fn response_in(path: &PathParameters) -> Result<RunId, Problem> {
    let id = path.text("response_id");
    parse_response_id(id).ok_or_else(|| no_response(id))
}

/// Makes the problem of a response that does not exist.
pub(super) fn no_response(id: &str) -> Problem {
    let words = format!("Response with id '{}' not found.", shortened(id));
    Problem::new(ProblemCode::RunNotFound, words)
}

/// Makes the problem of an item that does not exist. `pointer` is the JSON pointer to its id;
/// `None` for an id in the path.
pub(super) fn no_item(pointer: Option<&str>, id: &str) -> Problem {
    let words = format!("Item with id '{}' not found.", shortened(id));
    match pointer {
        Some(pointer) => Problem::of_field(ProblemCode::RunNotFound, pointer, words),
        None => Problem::new(ProblemCode::RunNotFound, words),
    }
}

/// Returns what opens sealed reasoning of the caller's tenant.
pub(super) fn opener(call: &Call) -> Opener<'_> {
    Opener {
        seal: call.api.openai.seal.as_ref(),
        tenant: &call.tenant,
    }
}
