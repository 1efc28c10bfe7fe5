//! What a page asks for, as the request for a run.

use super::chat_thread::ChatThread;
use crate::http::codes::ProblemCode;
use crate::http::faces::ai_sdk::{
    ChatEcho, ChatRequest, PageMessage, answers_to, is_greeting, new_messages, nothing_new,
};
use crate::http::problem::Problem;
use crate::run::{InputMessage, RunRequest, ThreadFrom};
use agent::answers::Answers;
use agent::record::RunMode;
use store::queue::IfBusy;
use values::ids::{RunId, SessionId};

/// Makes the request for a run. Also returns the first run of the turn that it goes on with.
pub(super) async fn prepare(
    thread: &ChatThread<'_>,
    read: ChatRequest,
) -> Result<(Option<RunId>, RunRequest), Problem> {
    match read.messages.last() {
        Some(last) if last.is_of_agent() => answer(thread, last).await,
        Some(last) if last.is_of_user() => {
            if let Some(active) = thread.active_run().await? {
                // Refuses a message that makes no sense before it interrupts anything. The turn at
                // work may be the one to go on from, so only its end shows the base.
                start_of(thread, &read).await?;
                thread.stop(&active).await?;
            }
            let (base, input) = start_of(thread, &read).await?;
            let request = RunRequest {
                thread_from: Some(ThreadFrom { session_id: base }),
                if_busy: IfBusy::Interrupt,
                echo: Some(ChatEcho::of_request(&input)),
                input,
                // The user goes on without an answer, perhaps once more.
                answers: Answers {
                    deny_open: true,
                    is_fork: true,
                    ..Answers::default()
                },
                ..RunRequest::new(RunMode::Stream)
            };
            Ok((None, request))
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
        let turn = thread.turn_end(&message.id).await?;
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
async fn answer(thread: &ChatThread<'_>, last: &PageMessage) -> Result<(Option<RunId>, RunRequest), Problem> {
    let turn = thread.turn_end(&last.id).await?.ok_or_else(|| unknown_message(last))?;
    let open = match turn.session_id {
        Some(session_id) => thread.open_calls(session_id).await?,
        None => None,
    };
    let (step_id, open_calls) = open.ok_or_else(|| nothing_new(last))?;
    let answers = Answers {
        answers: answers_to(last, (step_id, &open_calls))?,
        ..Answers::default()
    };
    let request = RunRequest {
        base_session_id: turn.session_id,
        echo: Some(ChatEcho::of_request(&[])),
        answers,
        ..RunRequest::new(RunMode::Stream)
    };
    Ok((Some(turn.first_run), request))
}

fn unknown_message(message: &PageMessage) -> Problem {
    Problem::of_field(
        ProblemCode::InvalidField,
        format!("{}/id", message.pointer),
        "no message of the assistant in this chat has this id",
    )
}
