//! What `run` shows of a run: its output, its end, and the exit code.

use std::io;
use std::process::ExitCode;

use anyhow::bail;
use serde::Deserialize;

use crate::cli::item::Item;
use crate::cli::output::{plain, print_json, print_line, print_note, print_piece};
use agent::record::{RunStatus, ThreadName};
use values::ids::{RunId, SessionId};
use values::json::Value;
use values::session::{Hash, OpenCallKind};

/// The exit code of a run that waits for answers.
const WAITING: u8 = 3;
/// The exit code of a run that ended before its work was done.
const STOPPED: u8 = 4;

/// A run that has ended, or that this command no longer follows.
pub(super) type Ended = Item<Outcome>;

/// The fields of a run that the command reads.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Outcome {
    pub(super) run_id: RunId,
    pub(super) session_id: Option<SessionId>,
    pub(super) thread: Option<ThreadName>,
    pub(super) thread_moved: Option<bool>,
    pub(super) status: RunStatus,
    error: Option<ErrorFields>,
    #[serde(default)]
    output_text: String,
    stop_signal: Option<SignalFields>,
    required_action: Option<RequiredFields>,
}

#[derive(Debug, Clone, Deserialize)]
struct ErrorFields {
    code: String,
    message: String,
}

#[derive(Debug, Clone, Deserialize)]
struct SignalFields {
    message: String,
}

#[derive(Debug, Clone, Deserialize)]
struct RequiredFields {
    calls: Vec<OpenCallFields>,
}

/// A call that waits for an answer.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct OpenCallFields {
    pub(super) call_id: String,
    pub(super) kind: OpenCallKind,
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) arguments_hash: Hash,
    pub(super) reason: Option<String>,
}

impl Outcome {
    /// Returns the calls that wait for answers.
    pub(super) fn open_calls(&self) -> &[OpenCallFields] {
        self.required_action.as_ref().map_or(&[], |action| &action.calls)
    }
}

/// Shows the output of a run while it works. With JSON, only notes.
#[derive(Debug)]
pub(super) struct Shown {
    json: bool,
    has_output: bool,
}

impl Shown {
    pub(super) fn new(json: bool) -> Self {
        let has_output = false;
        Self { json, has_output }
    }

    /// Shows more text of the model.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.has_output = true;
        if self.json { Ok(()) } else { print_piece(text) }
    }

    /// Ends the output. A run in another process may emit no pieces of text.
    pub(super) fn end(&self, run: &Outcome) -> io::Result<()> {
        let rest = if self.has_output { "" } else { &run.output_text };
        // After a run that failed before any output, no empty line is printed.
        if self.json || (rest.is_empty() && !self.has_output) {
            return Ok(());
        }
        print_line(rest)
    }
}

/// Shows a call of a tool that has ended.
pub(super) fn show_call(name: &str, arguments: &str, is_error: bool) -> io::Result<()> {
    let outcome = if is_error { "failed" } else { "done" };
    print_note(format_args!("[{} {}: {outcome}]", plain(name), plain(arguments)))
}

/// Prints how the run ended, and how to continue it or the thread that the command names.
pub(super) fn print_outcome(ended: &Ended, thread: Option<&ThreadName>, json: bool) -> anyhow::Result<()> {
    let run = &ended.fields;
    print_note(format_args!("run {}  status {}", run.run_id, run.status))?;
    for call in run.open_calls() {
        let (tool, arguments, call_id) = (plain(&call.tool), call.arguments.to_string(), plain(&call.call_id));
        let arguments = plain(&arguments);
        print_note(format_args!("[{tool} {arguments} waits for an answer: {call_id}]"))?;
    }
    if !run.open_calls().is_empty() {
        let run_id = run.run_id;
        print_note(format_args!(
            "answer with POST /v1/runs/{run_id}/answers, or deny the open calls with --deny-open"
        ))?;
    }
    match (thread, run.session_id) {
        _ if !run.status.has_session() => (),
        (Some(thread), _) => print_note(format_args!("continue with --thread {thread}"))?,
        (None, Some(session_id)) => print_note(format_args!("continue with --base {session_id}"))?,
        (None, None) => (),
    }
    if json {
        print_json(ended)?;
    }
    Ok(())
}

/// Returns the exit code of a run that was followed to its end.
pub(super) fn exit_code(run: &Outcome) -> anyhow::Result<ExitCode> {
    if let Some(error) = &run.error {
        bail!("{}: {}", plain(&error.code), plain(&error.message));
    }
    match run.status {
        RunStatus::Completed => Ok(ExitCode::SUCCESS),
        RunStatus::Waiting | RunStatus::Answered => Ok(ExitCode::from(WAITING)),
        RunStatus::Stopped => {
            if let Some(signal) = &run.stop_signal {
                print_note(format_args!("stopped: {}", plain(&signal.message)))?;
            }
            Ok(ExitCode::from(STOPPED))
        }
        RunStatus::Cancelled => bail!("the run was cancelled"),
        RunStatus::Failed | RunStatus::Queued | RunStatus::Running => bail!("the run has no result"),
    }
}
