//! Shows a page what is there.

use axum::response::Response;

use super::stream::{page_of, respond_with};
use crate::http::auth::Call;
use crate::http::chat_history::{ChatHistory, ChatOutline, read_history};
use crate::http::chat_thread::ChatThread;
use crate::http::face_stream;
use crate::http::faces::ag_ui::{EventWriter, Outcome, RunInput, messages_of};
use crate::http::guards::within;
use crate::http::problem::Problem;
use crate::run::read::follow;
use store::keys::Scope;
use tasks::off_thread::by_size;

/// Responds with the messages and the variables of a thread. If a run is at work, its events
/// follow.
pub(super) async fn hydrate(call: &Call, thread: &ChatThread<'_>, input: &RunInput) -> Result<Response, Problem> {
    call.check_scope(Scope::SessionsRead)?;
    let ChatHistory {
        outline,
        passages,
        bytes,
        share,
    } = Box::pin(read_history(thread)).await?;
    let active = outline.active().map(|run| run.summary.run_id);
    let ChatOutline {
        session_id,
        question,
        newest,
    } = outline;
    let last = newest.map(|run| run.summary);
    // Another run may have published the session.
    let last = last.filter(|run| !run.status.has_session() || Some(run.session_id) == session_id);
    let variables = thread.variables(session_id).await?;
    let messages = by_size(&call.tenant, bytes, move || messages_of(&passages, question)).await;
    let mut page = page_of(input);
    page.messages = Some(serde_json::to_string(&messages).map_err(Problem::internal)?);
    let tools = page.tools.clone();
    let writer = EventWriter::new(page, variables).showing(messages);
    if let Some(active) = active {
        let counted = call.api.take_reader(&call.tenant)?;
        let following = follow(&call.api.runs, &call.tenant, active, 0);
        let following = within(call.api.limits.request_timeout, following).await??;
        let following = following.ok_or_else(|| Problem::internal("the run at work is gone"))?;
        return Ok(face_stream::respond(
            call.clone(),
            None,
            following.events,
            None,
            Some(counted),
            writer,
        ));
    }
    let open = match session_id {
        Some(session_id) => thread.open_calls(session_id).await?,
        None => None,
    };
    let end = match (&open, last) {
        (Some((step, open_calls)), _) => Ok((Outcome::of_open_calls(*step, open_calls, &tools), None)),
        (None, Some(run)) => run.error.clone().map_or_else(|| Ok(Outcome::of_end(&run)), Err),
        (None, None) => Ok((Outcome::SUCCESS, None)),
    };
    Ok(respond_with(writer, end, share))
}
