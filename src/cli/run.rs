//! `run`: one run against the configured store, streamed to the terminal.

use std::error::Error;
use std::io;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::time::timeout;

use super::output::{EndedBySignal, is_broken_pipe, print_json, print_line, print_note, print_piece};
use super::{ReadArgs, store};
use crate::app::{App, Extensions};
use crate::config::Loaded;
use crate::lifecycle::StopSignals;
use crate::run::process;
use crate::run::read::Followed;
use crate::run::refusal::Refusal;
use crate::run::{InputMessage, OnDisconnect, RunHandle, RunRequest, control_run, start};
use ::store::queue::IfBusy;
use agent::AgentEvent;
use agent::answers::Answers;
use agent::record::{RunControl, RunEventPayload, RunMode, RunRecord, RunStatus, RunSummary, RunView, ThreadName};
use values::ids::{RunId, SessionId};
use values::message::ContentPart;
use values::model_ref::ModelRef;

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// The input of the agent; `-` reads it from standard input.
    text: String,
    /// Continues this session.
    #[arg(long, value_name = "SESSION")]
    base: Option<SessionId>,
    /// Continues this thread and moves it. The run is queued: this process works on it, or another
    /// one on the store.
    #[arg(long, value_name = "NAME", conflicts_with = "base")]
    thread: Option<ThreadName>,
    /// The policy when the thread has another active run: `reject` this one, `queue` it,
    /// `interrupt` the other one or `fork`.
    #[arg(long, value_name = "WHAT", requires = "thread", default_value = "reject", value_parser = parse_if_busy)]
    if_busy: IfBusy,
    /// Denies the open calls of a session that waits for answers.
    #[arg(long)]
    deny_open: bool,
    /// Runs this agent.
    #[arg(long)]
    agent: Option<String>,
    /// Uses this model, as PROVIDER/MODEL.
    #[arg(long)]
    model: Option<ModelRef>,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs an agent once.
pub(super) async fn run(loaded: Loaded, args: RunArgs, extensions: Extensions) -> anyhow::Result<()> {
    let text = text_of(&args)?;
    for unread in loaded
        .unread_variables
        .iter()
        .filter(|unread| unread.overridden.is_some())
    {
        print_note(format_args!("warning: {unread}"))?;
    }
    let config = loaded.config;
    let is_new = store::is_missing(&config)?;
    let app = App::build(&config, extensions).await?;
    store::name(&config, is_new)?;
    let mut signals = StopSignals::listen_on_terminal()?;
    if args.thread.is_some() {
        process::begin(&app.runs);
    }
    let mut run_id = None;
    let mut grace = config.runs.shutdown_grace;
    let mut starting = pin!(start(&app.runs, args.read.tenant.clone(), request(&args, text)));
    // A signal stops the run, which publishes its messages so far.
    let followed = tokio::select! {
        followed = follow(starting.as_mut(), args.read.json, &mut run_id) => followed,
        signal = signals.next() => {
            if run_id.is_none() {
                tokio::select! {
                    accepted = timeout(grace, cancel_once_accepted(&app, &args, starting)) => run_id = accepted.ok().flatten(),
                    _ = signals.next() => grace = Duration::ZERO,
                }
            }
            Err(EndedBySignal::Received(signal).into())
        }
    };
    tokio::select! {
        () = process::shut_down(&app.runs, grace) => (),
        _ = signals.next() => process::shut_down(&app.runs, Duration::ZERO).await,
    }
    let record = match (&followed, run_id) {
        (Ok(record), _) => Some(record.clone()),
        // Shows the outcome of the run, or its status if another process executes it.
        (Err(_), Some(run_id)) => app
            .runs
            .store
            .run_lookup(&args.read.tenant, run_id)
            .await
            .ok()
            .flatten(),
        (Err(_), None) => None,
    };
    app.disconnect().await;
    let printed = record.map_or(Ok(()), |record| print_outcome(&args, record));
    let done = followed.and_then(|record| printed.and_then(|()| judge(&record.summary)));
    done.map_err(|error| {
        if is_broken_pipe(&error) {
            EndedBySignal::BrokenPipe.into()
        } else {
            error
        }
    })
}

/// Prints how the run ended and how to continue it.
fn print_outcome(args: &RunArgs, record: RunRecord) -> anyhow::Result<()> {
    let (run_id, session_id, status) = (record.summary.run_id, record.summary.session_id, record.summary.status);
    print_note(format_args!("run {run_id}  status {status}"))?;
    for call in &record.open_calls {
        let (tool, arguments, call_id) = (&call.tool, &call.arguments, &call.call_id);
        print_note(format_args!("[{tool} {arguments} waits for an answer: {call_id}]"))?;
    }
    match &args.thread {
        _ if !record.summary.has_session() => (),
        Some(thread) => print_note(format_args!("continue with --thread {thread}"))?,
        None => print_note(format_args!("continue with --base {session_id}"))?,
    }
    if args.read.json {
        print_json(&RunView::from(record))?;
    }
    Ok(())
}

fn judge(run: &RunSummary) -> anyhow::Result<()> {
    match &run.error {
        Some(error) => bail!("{}: {}", error.code, error.message),
        None if run.status == RunStatus::Cancelled => bail!("the run was cancelled"),
        None => Ok(()),
    }
}

/// Returns the input, without the line end that a shell adds.
fn text_of(args: &RunArgs) -> anyhow::Result<String> {
    if args.text != "-" {
        ensure!(!args.text.is_empty(), "the text is empty");
        return Ok(args.text.clone());
    }
    let read = io::read_to_string(io::stdin()).context("can't read standard input")?;
    let text = read.trim_end_matches(['\r', '\n']);
    ensure!(!text.is_empty(), "standard input is empty");
    Ok(text.to_owned())
}

/// Parses the choice for a thread that has another active run.
fn parse_if_busy(text: &str) -> Result<IfBusy, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

/// Returns the request for the run.
fn request(args: &RunArgs, text: String) -> RunRequest {
    RunRequest {
        base_session_id: args.base,
        agent: args.agent.clone(),
        input: vec![InputMessage::of_user(vec![ContentPart::text(text)])],
        answers: Answers {
            deny_open: args.deny_open,
            ..Answers::default()
        },
        thread: args.thread.clone(),
        if_busy: args.if_busy,
        model: args.model.clone(),
        on_disconnect: OnDisconnect::Stop,
        ..RunRequest::new(RunMode::Stream)
    }
}

/// Cancels a run that is being accepted, once it is accepted. Returns its id if it was.
async fn cancel_once_accepted(
    app: &App,
    args: &RunArgs,
    starting: impl Future<Output = Result<RunHandle, Refusal>>,
) -> Option<RunId> {
    let run_id = starting.await.ok()?.detach().summary.run_id;
    if let Err(error) = control_run(&app.runs, &args.read.tenant, run_id, RunControl::Cancel).await {
        tracing::warn!(%run_id, error = &error as &dyn Error, "a run can't be cancelled");
    }
    Some(run_id)
}

/// Follows the run and prints its output, and its id as soon as there is one.
async fn follow(
    starting: impl Future<Output = Result<RunHandle, Refusal>>,
    json: bool,
    run_id: &mut Option<RunId>,
) -> anyhow::Result<RunRecord> {
    let handle = starting.await?;
    *run_id = Some(handle.run_id);
    let (caller, mut events) = handle.into_events();
    let mut has_output = false;
    while let Some(followed) = events.next().await {
        caller.note_sent(&followed);
        let event = match followed {
            Followed::Event(event) => event,
            Followed::Dropped { reason } => bail!("the run can't be followed any more: {reason}"),
        };
        match &event.payload {
            RunEventPayload::Agent(event) => {
                let event: &AgentEvent = event;
                has_output |= matches!(event, AgentEvent::MessageDelta { .. });
                show(event, json)?;
            }
            RunEventPayload::Completed(record)
            | RunEventPayload::Stopped(record)
            | RunEventPayload::Waiting(record)
            | RunEventPayload::Failed(record)
            | RunEventPayload::Cancelled(record) => {
                if !json {
                    // A run in another process may emit no deltas.
                    let rest = if has_output {
                        String::new()
                    } else {
                        record.output_text()
                    };
                    // After a run that failed before any output, no empty line is printed.
                    if has_output || !rest.is_empty() {
                        print_line(rest)?;
                    }
                }
                return Ok((**record).clone());
            }
            RunEventPayload::Started(_)
            | RunEventPayload::Resumed { .. }
            | RunEventPayload::SessionCommitted { .. } => (),
        }
    }
    bail!("the run ended without a result")
}

fn show(event: &AgentEvent, json: bool) -> io::Result<()> {
    match event {
        AgentEvent::MessageDelta { .. } if json => Ok(()),
        AgentEvent::MessageDelta { text, .. } => print_piece(text),
        AgentEvent::ToolCallCompleted {
            name,
            arguments,
            is_error,
            ..
        } => {
            let outcome = if *is_error { "failed" } else { "done" };
            print_note(format_args!("[{name} {arguments}: {outcome}]"))
        }
        _ => Ok(()),
    }
}
