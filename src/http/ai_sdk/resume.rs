//! `GET /v1/ai-sdk/{agent}/chat/{chat_id}/stream`.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use super::chat_stream::respond;
use crate::http::auth::Call;
use crate::http::chat_thread::ChatThread;
use crate::http::codes::ProblemCode;
use crate::http::faces::chat::ChunkWriter;
use crate::http::guards::within;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use crate::run::read::follow;

/// Follows the message that the agent writes in a chat, from its first chunk on.
///
/// A page that is loaded again sends this request (`resume` of `useChat`). Nothing at work, an
/// unknown chat included, is no error.
#[utoipa::path(get, path = "/v1/ai-sdk/{agent}/chat/{chat_id}/stream", tag = "ai_sdk", params(
    ("agent" = String, Path), ("chat_id" = String, Path),
), responses(
    (status = 200, description = "The chunks of the message", content((String = "text/event-stream"))),
    (status = 204, description = "Nothing is at work"),
), extensions(("x-problems" = json!([ProblemCode::TooManyReaders]))))]
pub(in crate::http) async fn resume_chat(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let nothing = || Ok(StatusCode::NO_CONTENT.into_response());
    let Some(thread) = ChatThread::in_path(&call, &path, "chat_id") else {
        return nothing();
    };
    let Some(active) = thread.active_run().await? else {
        return nothing();
    };
    let earlier = Box::pin(thread.earlier_runs(&active)).await?;
    let writer = ChunkWriter::after(&earlier);
    let counted = call.api.take_reader(&call.tenant)?;
    let following = follow(&call.api.runs, &call.tenant, active.summary.run_id, 0);
    match within(call.api.limits.request_timeout, following).await?? {
        Some(following) => Ok(respond(call, following.events, None, Some(counted), writer)),
        None => nothing(),
    }
}
