//! The turns of `run`: each is one request for a run, at a store or at a service.

use serde_json::json;

use super::outcome::{Ended, Outcome, Shown};
use crate::cli::source::ReadArgs;
use crate::lifecycle::StopSignals;
use crate::run::{InputMessage, OnDisconnect, RunRequest};
use agent::answers::{Answer, AnswerContent, Answers};
use agent::record::{RunMode, ThreadName};
use store::queue::IfBusy;
use values::ids::{RunId, SessionId};
use values::json::Value;
use values::message::ContentPart;
use values::model_ref::ModelRef;

/// How long a service lets a run go on without this command, in seconds. Longer than all tries to
/// connect again.
const GRACE_SECONDS: u32 = 60;

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RunArgs {
    /// The input of the agent; `-` reads it from standard input.
    pub(super) text: String,
    /// Continues this session.
    #[arg(long, value_name = "SESSION")]
    base: Option<SessionId>,
    /// Continues this thread and moves it. The run is queued: this process works on it, or another
    /// one on the store.
    #[arg(long, value_name = "NAME", conflicts_with = "base")]
    pub(super) thread: Option<ThreadName>,
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
    pub(super) read: ReadArgs,
}

/// Runs the turns.
pub(super) trait Runner {
    /// Starts a run and follows it to its end.
    async fn follow(&mut self, turn: &Turn<'_>, shown: &mut Shown) -> anyhow::Result<Ended>;

    /// Stops the run that the error interrupted, and closes. Returns the interrupted run, if it can
    /// be read.
    async fn close(self, error: Option<&anyhow::Error>, signals: &mut StopSignals) -> Option<Ended>;
}

/// One request for a run.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    args: &'a RunArgs,
    content: TurnContent,
}

#[derive(Debug)]
enum TurnContent {
    /// The input of the command line.
    Input(String),
    /// Answers to a run.
    Answers {
        run_id: RunId,
        session_id: Option<SessionId>,
        thread: Option<ThreadName>,
        answers: Vec<Answer>,
    },
}

impl<'a> Turn<'a> {
    /// Makes the first turn.
    pub(super) fn first(args: &'a RunArgs, text: String) -> Self {
        let content = TurnContent::Input(text);
        Self { args, content }
    }

    /// Makes the turn that answers the open calls of a run.
    pub(super) fn answering(args: &'a RunArgs, run: &Outcome, answers: Vec<Answer>) -> Self {
        let content = TurnContent::Answers {
            run_id: run.run_id,
            session_id: run.session_id,
            thread: run.thread.clone().filter(|_| run.thread_moved == Some(true)),
            answers,
        };
        Self { args, content }
    }

    /// Returns whether the run is queued, and not only executed by this process.
    pub(super) fn is_queued(&self) -> bool {
        self.args.thread.is_some() || self.args.deny_open || matches!(self.content, TurnContent::Answers { .. })
    }

    /// Returns the request for this process.
    pub(super) fn request(&self) -> RunRequest {
        let args = self.args;
        let common = RunRequest {
            if_busy: args.if_busy,
            model: args.model.clone(),
            on_disconnect: OnDisconnect::Stop,
            ..RunRequest::new(RunMode::Stream)
        };
        match &self.content {
            TurnContent::Input(text) => RunRequest {
                base_session_id: args.base,
                agent: args.agent.clone(),
                input: vec![InputMessage::of_user(vec![ContentPart::text(text)])],
                answers: Answers {
                    deny_open: args.deny_open,
                    ..Answers::default()
                },
                thread: args.thread.clone(),
                ..common
            },
            TurnContent::Answers {
                session_id,
                thread,
                answers,
                ..
            } => RunRequest {
                base_session_id: *session_id,
                thread: thread.clone(),
                answers: Answers {
                    answers: answers.clone(),
                    ..Answers::default()
                },
                ..common
            },
        }
    }

    /// Returns the path and the body of the request to a service.
    pub(super) fn body(&self) -> (String, Value) {
        let args = self.args;
        let mut body = json!({
            "mode": "stream",
            "on_disconnect": "stop",
            "disconnect_grace_seconds": GRACE_SECONDS,
            "model": args.model,
        });
        match &self.content {
            TurnContent::Input(text) => {
                body["input"] = json!(text);
                body["base_session_id"] = json!(args.base);
                body["thread"] = json!(args.thread);
                body["agent"] = json!(args.agent);
                body["deny_open"] = json!(args.deny_open);
                if args.thread.is_some() {
                    body["if_busy"] = json!(args.if_busy);
                }
                ("/v1/runs".to_owned(), body)
            }
            TurnContent::Answers { run_id, answers, .. } => {
                body["answers"] = answers.iter().map(answer_body).collect();
                (format!("/v1/runs/{run_id}/answers"), body)
            }
        }
    }
}

/// Returns an answer as the API reads it. A person only approves or denies.
fn answer_body(answer: &Answer) -> Value {
    let mut body = json!({"call_id": answer.call_id, "arguments_hash": answer.arguments_hash});
    match &answer.content {
        AnswerContent::Deny { reason } => {
            body["decision"] = json!("deny");
            body["reason"] = json!(reason);
        }
        _ => body["decision"] = json!("approve"),
    }
    body
}

/// Parses the choice for a thread that has another active run.
fn parse_if_busy(text: &str) -> Result<IfBusy, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}
