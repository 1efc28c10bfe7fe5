//! `POST /v1/ai-sdk/{agent}/chat/{chat_id}/stop`.

use axum::http::StatusCode;

use crate::http::auth::Call;
use crate::http::chat_thread::ChatThread;
use crate::http::codes::ProblemCode;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;

/// Stops the agent at work in a chat. What it has done stays.
///
/// `stop()` of `useChat` only closes the connection, which looks like a page that is loaded again.
#[utoipa::path(post, path = "/v1/ai-sdk/{agent}/chat/{chat_id}/stop", tag = "ai_sdk", params(
    ("agent" = String, Path), ("chat_id" = String, Path),
), responses(
    (status = 204, description = "The agent ends soon, or nothing was at work"),
), extensions(("x-problems" = json!([ProblemCode::RunUnreachable]))))]
pub(in crate::http) async fn stop_chat(call: Call, path: PathParameters) -> Result<StatusCode, Problem> {
    if let Some(thread) = ChatThread::in_path(&call, &path, "chat_id")
        && let Some(active) = thread.active_run().await?
    {
        Box::pin(thread.stop(&active)).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
