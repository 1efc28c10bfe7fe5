//! `GET /v1/ai-sdk/{agent}/chat/{chat_id}/messages`.

use axum::response::{IntoResponse as _, Response};

use super::body::AiSdkObject;
use crate::http::auth::Call;
use crate::http::chat_history::{ChatHistory, read_history};
use crate::http::chat_thread::ChatThread;
use crate::http::faces::ai_sdk::{UiMessage, messages_of};
use crate::http::in_flight::respond_with;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use tasks::off_thread::by_size;

/// Returns the messages of a chat, with the ids that its page knows.
///
/// A page begins with them. The message at work is not among them: its stream has it from the first
/// chunk on. The question of a turn that has failed is.
#[utoipa::path(get, path = "/v1/ai-sdk/{agent}/chat/{chat_id}/messages", tag = "ai_sdk", params(
    ("agent" = String, Path), ("chat_id" = String, Path),
), responses(
    (status = 200, description = "The messages, as the AI SDK has them; none for an unknown chat", body = Vec<AiSdkObject>),
))]
pub(in crate::http) async fn list_chat_messages(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let Some(thread) = ChatThread::in_path(&call, &path, "chat_id") else {
        return Ok(axum::Json(Vec::<UiMessage>::new()).into_response());
    };
    let ChatHistory {
        outline,
        passages,
        bytes,
        share,
    } = read_history(&thread).await?;
    let mut messages = by_size(&call.tenant, bytes, move || messages_of(&passages)).await;
    messages.extend(outline.question.into_iter().map(UiMessage::of_user));
    respond_with(share, messages).await
}
