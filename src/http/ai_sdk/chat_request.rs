//! What a page asks for, as the request for a run.

use crate::http::chat_start::{answer_request, message_request};
use crate::http::chat_thread::ChatThread;
use crate::http::codes::ProblemCode;
use crate::http::faces::ai_sdk::{ChatRequest, PageMessage, answers_to, is_greeting, new_messages, nothing_new};
use crate::http::problem::Problem;
use crate::run::{InputMessage, RunRequest};
use values::ids::{RunId, SessionId};

/// A request for a run.
pub(super) struct Prepared {
    pub(super) request: RunRequest,
    /// The first run of the turn that it goes on with.
    pub(super) turn: Option<RunId>,
    /// Whether it has a message of the user, which interrupts the run at work.
    pub(super) interrupts: bool,
}

/// Makes the request for a run. The turn at work may be the one to go on from, so only its end
/// shows the base.
pub(super) async fn prepare(thread: &ChatThread<'_>, read: &ChatRequest) -> Result<Prepared, Problem> {
    match read.messages.last() {
        Some(last) if last.is_of_agent() => answer(thread, last).await,
        Some(last) if last.is_of_user() => {
            let (base, input) = start_of(thread, read).await?;
            Ok(Prepared {
                request: message_request(base, input),
                turn: None,
                interrupts: true,
            })
        }
        _ => Err(Problem::invalid_field(
            "/messages",
            "the last message is neither of the user nor of the assistant",
        )),
    }
}

/// Returns the session that a message of the user continues, and the new messages.
async fn start_of(
    thread: &ChatThread<'_>,
    read: &ChatRequest,
) -> Result<(Option<SessionId>, Vec<InputMessage>), Problem> {
    let (messages, max) = (&read.messages, thread.max_messages());
    if let [last] = messages.as_slice()
        && read.is_last_only
    {
        return Ok((before_last(thread, last).await?, new_messages(messages, None, max)?));
    }
    let base = base_of(thread, messages).await?;
    let (index, session_id) = base.unzip();
    Ok((session_id, new_messages(messages, index, max)?))
}

/// Finds the last message of the agent that has published a session, with its index. Refuses one
/// that nobody here has made: its text would become a part of the conversation.
async fn base_of(thread: &ChatThread<'_>, messages: &[PageMessage]) -> Result<Option<(usize, SessionId)>, Problem> {
    let of_agent = messages.iter().enumerate().rev();
    for (index, message) in of_agent.filter(|(_, message)| message.is_of_agent()) {
        if is_greeting(messages, index) {
            break;
        }
        let turn = thread.turn_end(message.run_id()).await?;
        if let Some(session_id) = turn.ok_or_else(|| unknown_message(message))?.session_id {
            return Ok(Some((index, session_id)));
        }
    }
    Ok(None)
}

/// Finds the session before a message that the page has sent alone: an earlier message with its id
/// is replaced.
async fn before_last(thread: &ChatThread<'_>, last: &PageMessage) -> Result<Option<SessionId>, Problem> {
    match thread.before_message(&last.id).await? {
        Some(before) => Ok(before),
        None => thread.session_id().await,
    }
}

/// Makes the request that answers the open calls of a message.
async fn answer(thread: &ChatThread<'_>, last: &PageMessage) -> Result<Prepared, Problem> {
    let turn = thread
        .turn_end(last.run_id())
        .await?
        .ok_or_else(|| unknown_message(last))?;
    let open = match turn.session_id {
        Some(session_id) => thread.open_calls(session_id).await?,
        None => None,
    };
    let (step_id, open_calls) = open.ok_or_else(|| nothing_new(last))?;
    let answers = answers_to(last, (step_id, &open_calls))?;
    Ok(Prepared {
        request: answer_request(turn.session_id, answers, Vec::new()),
        turn: Some(turn.first_run),
        interrupts: false,
    })
}

fn unknown_message(message: &PageMessage) -> Problem {
    Problem::of_field(
        ProblemCode::InvalidField,
        format!("{}/id", message.pointer),
        "no message of the assistant in this chat has this id",
    )
}
