//! What a client asks for, as the request for a run.

use std::collections::BTreeSet;

use super::partial_answers::{store_answers, stored_answers};
use super::states::missing_checkpoint;
use crate::http::chat_history::{ChatOutline, read};
use crate::http::chat_start::{answer_request, message_request};
use crate::http::chat_thread::ChatThread;
use crate::http::codes::ProblemCode;
use crate::http::faces::chat::{ChatEcho, EchoMessage};
use crate::http::faces::langgraph::{CheckpointName, Command, OpenStep, RunBody, messages_of};
use crate::http::problem::Problem;
use crate::run::read::{run_lookup, run_messages};
use crate::run::{InputMessage, RunRequest, ThreadFrom};
use agent::answers::Answer;
use agent::record::RunMode;
use agent::state::ExecutionBudget;
use store::queue::IfBusy;
use values::ids::SessionId;
use values::message::Role;
use values::session::Setting;

/// Where a run starts.
#[derive(Debug, Default)]
struct Start {
    base: Option<SessionId>,
    /// The input that the run repeats.
    repeated: Vec<EchoMessage>,
    /// The session of the run with that input.
    again: Option<SessionId>,
    /// Whether the client has named a checkpoint.
    is_named: bool,
}

/// Makes the request for a run; `None` if the thread waits for other answers. A run in the
/// background needs all of them.
pub(super) async fn prepare(
    thread: &ChatThread<'_>,
    body: &RunBody,
    is_background: bool,
) -> Result<Option<RunRequest>, Problem> {
    let request = match &body.command {
        Some(command) => answer(thread, body, command, is_background).await?,
        None => Some(ask(thread, body).await?),
    };
    Ok(request.map(|request| RunRequest {
        metadata: Setting::Set(body.metadata.clone()),
        webhook: body.webhook.clone(),
        if_busy: body.multitask.if_busy(),
        ..request
    }))
}

/// Makes the request of a client that has new messages, or repeats an input.
async fn ask(thread: &ChatThread<'_>, body: &RunBody) -> Result<RunRequest, Problem> {
    let (start, input) = input_of(thread, body).await?;
    let echo = ChatEcho {
        again: start.again,
        ..ChatEcho::of_request(&input)
    };
    let mut request = RunRequest {
        echo: Some(echo.stored()),
        ..message_request(start.base, input)
    };
    if let Some(base) = start.base
        && let Some((id, calls)) = thread.open_calls(base).await?
    {
        request.answers.answers = stored_answers(thread, &OpenStep { id, calls }).await?;
    }
    if start.is_named || !start.repeated.is_empty() || body.multitask.if_busy() != IfBusy::Queue {
        return Ok(request);
    }
    // A run in the queue starts where the runs before it have moved the thread.
    Ok(RunRequest {
        thread_from: None,
        ..request
    })
}

async fn input_of(thread: &ChatThread<'_>, body: &RunBody) -> Result<(Start, Vec<InputMessage>), Problem> {
    let mut start = start_of(thread, body).await?;
    let mut known: BTreeSet<String> = start.repeated.iter().map(|message| message.id().to_owned()).collect();
    if let Some(base) = start.base {
        let (_share, _, passages) = read(thread.call, base).await?;
        known.extend(messages_of(&passages).iter().map(|message| message.id().to_owned()));
    }
    let api = &thread.call.api;
    let make_id = || api.runs.ids.next_uuid().to_string();
    let new = body.new_messages(|id| known.contains(id), make_id, api.limits.max_input_messages)?;
    if !new.is_empty() {
        start.again = None;
    }
    let repeated = start.repeated.iter().cloned().map(EchoMessage::into_input);
    let input: Vec<_> = repeated.chain(new).collect();
    if input.is_empty() {
        let words = "neither new messages, nor a command, nor a checkpoint with an input";
        return Err(Problem::invalid_field("/input", words));
    }
    Ok((start, input))
}

/// Makes the request that answers the open calls of a session; `None` if it has only some answers,
/// which the thread retains.
async fn answer(
    thread: &ChatThread<'_>,
    body: &RunBody,
    command: &Command,
    is_background: bool,
) -> Result<Option<RunRequest>, Problem> {
    let start = start_of(thread, body).await?;
    let open = match start.base {
        Some(base) => thread.open_calls(base).await?,
        None => None,
    };
    let nothing = || Problem::new(ProblemCode::InvalidAnswers, "nothing waits for an answer");
    let (id, calls) = open.ok_or_else(nothing)?;
    let step = OpenStep { id, calls };
    let known = stored_answers(thread, &step).await?;
    let resume = match command {
        Command::Resolve => return Ok(Some(at_checkpoint(&start, resolved(start.base, known)))),
        Command::Resume(resume) => resume,
    };
    let new = step.answers_in(resume, &known)?;
    let now = thread.call.api.runs.clock.now();
    let is_whole = |answers: &[Answer]| {
        let mut left = step.calls.iter().filter(|call| !call.is_expired(now));
        left.all(|call| answers.iter().any(|answer| answer.call_id == call.call_id))
    };
    let mut answers = [known, new.clone()].concat();
    if !is_whole(&answers) {
        if is_background {
            let words = "the thread waits for answers to other calls, too: send all of them";
            return Err(Problem::new(ProblemCode::InvalidAnswers, words));
        }
        // Another request may have had the others meanwhile.
        answers = store_answers(thread, &step, new).await?;
        if !is_whole(&answers) {
            return Ok(None);
        }
    }
    let request = answer_request(start.base, answers, Vec::new());
    Ok(Some(at_checkpoint(&start, request)))
}

/// Lets a run begin at a checkpoint that the client has named, which may be on another branch.
fn at_checkpoint(start: &Start, request: RunRequest) -> RunRequest {
    if !start.is_named {
        return request;
    }
    RunRequest {
        base_session_id: None,
        thread_from: Some(ThreadFrom { session_id: start.base }),
        ..request
    }
}

/// Makes the request of a client that wants no answer: the calls that are still open are denied,
/// and the model is not asked.
fn resolved(base: Option<SessionId>, answers: Vec<Answer>) -> RunRequest {
    let mut request = answer_request(base, answers, Vec::new());
    request.answers.deny_open = true;
    RunRequest {
        budget: ExecutionBudget {
            max_steps: Some(1),
            ..ExecutionBudget::default()
        },
        ..request
    }
}

async fn start_of(thread: &ChatThread<'_>, body: &RunBody) -> Result<Start, Problem> {
    let Some(name) = &body.checkpoint else {
        return head(thread).await;
    };
    let missing = || missing_checkpoint(name);
    let is_named = true;
    match CheckpointName::read(name).ok_or_else(missing)? {
        CheckpointName::Root => Ok(Start {
            is_named,
            ..Start::default()
        }),
        CheckpointName::Session(session_id) => {
            if !thread.has_session(session_id).await? {
                return Err(missing());
            }
            Ok(Start {
                base: Some(session_id),
                is_named,
                ..Start::default()
            })
        }
        CheckpointName::Input(session_id) => {
            let start = input_start(thread, session_id).await?.ok_or_else(missing)?;
            Ok(Start { is_named, ..start })
        }
    }
}

/// Returns the head of a thread. The question of a run that has failed is asked again.
async fn head(thread: &ChatThread<'_>) -> Result<Start, Problem> {
    let outline = ChatOutline::read(thread).await?.without_cancelled();
    let is_active = outline.active().is_some();
    let tip = thread.session_id().await?;
    Ok(Start {
        base: tip,
        repeated: if is_active { Vec::new() } else { outline.question },
        ..Start::default()
    })
}

/// Returns the start of the run that publishes a session, with its input.
async fn input_start(thread: &ChatThread<'_>, session_id: SessionId) -> Result<Option<Start>, Problem> {
    let (runs, tenant) = (&thread.call.api.runs, &thread.call.tenant);
    let published = runs.store.session_lookup(tenant, session_id).await?;
    let run = match published.and_then(|session| session.run_id) {
        Some(run_id) => run_lookup(runs, tenant, run_id).await?,
        // The run has failed, or is at work.
        None => thread.newest_run(&[]).await?,
    };
    let Some(run) = run.filter(|run| run.summary.session_id == session_id) else {
        return Ok(None);
    };
    let echo = ChatEcho::of_stored(run.echo.as_deref());
    let repeated = if run.summary.status.has_session() {
        if !thread.has_session(session_id).await? {
            return Ok(None);
        }
        let messages = run_messages(runs, tenant, run.summary.run_id).await?;
        let input = messages.map(|messages| messages.input).unwrap_or_default();
        let of_user = input.iter().filter(|message| message.role == Role::User);
        of_user.map(|message| EchoMessage::of_stored(message)).collect()
    } else {
        // The record of a run without a session has only its echo, which lacks large files.
        echo.messages
    };
    Ok(Some(Start {
        base: run.summary.base_session_id,
        repeated,
        again: Some(echo.again.unwrap_or(session_id)),
        is_named: true,
    }))
}

/// Returns how a client follows a run.
pub(super) fn mode_of(is_background: bool) -> RunMode {
    if is_background { RunMode::Async } else { RunMode::Stream }
}
