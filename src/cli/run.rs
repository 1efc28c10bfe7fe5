//! `run`: one run against the configured store, streamed to the terminal.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;

use anyhow::{Context as _, anyhow, bail, ensure};
use tokio_stream::StreamExt as _;

use super::output::{print_json, print_line, print_note, print_piece};
use super::{JsonArgs, TenantArgs, store};
use crate::agent::AgentEvent;
use crate::agent::state::ExecutionBudget;
use crate::app::{App, Extensions};
use crate::config::Config;
use crate::ids::SessionId;
use crate::json::Object;
use crate::lifecycle::StopSignals;
use crate::limits::RunLimits;
use crate::message::{ContentPart, Role, Section};
use crate::model_ref::ModelRef;
use crate::record::{RunEventPayload, RunMode, RunRecord, RunStatus, RunView, ThreadName};
use crate::run::{EventOptions, Followed, InputMessage, OnDisconnect, OverrideChanges, RunRequest};
use crate::store::{ConflictPolicy, IfBusy};

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// What to say to the agent; `-` reads it from standard input.
    text: String,
    /// Continues this session.
    #[arg(long, value_name = "SESSION")]
    base: Option<SessionId>,
    /// Continues this thread and moves it. The run is queued: this process works on it, or another one on the store.
    #[arg(long, value_name = "NAME", conflicts_with = "base")]
    thread: Option<ThreadName>,
    /// Runs this agent.
    #[arg(long)]
    agent: Option<String>,
    /// Uses this model, as PROVIDER/MODEL.
    #[arg(long)]
    model: Option<ModelRef>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    tenant: TenantArgs,
}

/// Runs an agent once.
pub(super) async fn run(config: Config, args: RunArgs, extensions: Extensions) -> anyhow::Result<()> {
    let text = text_of(&args)?;
    let is_new = store::is_missing(&config)?;
    let app = App::build_with(&config, extensions).await?;
    store::name(&config, is_new)?;
    let mut signals = StopSignals::listen()?;
    if args.thread.is_some() {
        app.runs.begin();
    }
    let followed = tokio::select! {
        followed = follow(&app, &args, text) => followed,
        // Leaving cancels the run, whose record is stored below.
        () = signals.next() => Err(anyhow!("interrupted")),
    };
    tokio::select! {
        () = app.close(config.runs.shutdown_grace) => (),
        () = signals.next() => (),
    }
    let record = followed?;
    let summary = record.summary.clone();
    if args.json.json {
        print_json(&RunView::from(record))?;
    }
    print_note(format_args!("run {}  status {}", summary.run_id, summary.status))?;
    match (&summary.error, args.thread) {
        (Some(error), _) => bail!("{}: {}", error.code, error.message),
        (None, _) if summary.status == RunStatus::Cancelled => bail!("the run was cancelled"),
        (None, Some(thread)) => Ok(print_note(format_args!("continue with --thread {thread}"))?),
        (None, None) => Ok(print_note(format_args!("continue with --base {}", summary.session_id))?),
    }
}

/// Returns what to say, without the line end that a shell puts behind it.
fn text_of(args: &RunArgs) -> anyhow::Result<String> {
    if args.text != "-" {
        return Ok(args.text.clone());
    }
    let read = io::read_to_string(io::stdin()).context("can't read standard input")?;
    let text = read.trim_end_matches(['\r', '\n']);
    ensure!(!text.is_empty(), "standard input is empty");
    Ok(text.to_owned())
}

async fn follow(app: &App, args: &RunArgs, text: String) -> anyhow::Result<RunRecord> {
    let request = RunRequest {
        base_session_id: args.base,
        agent: args.agent.clone(),
        input: vec![InputMessage {
            role: Role::User,
            name: None,
            section: Section::default(),
            content: vec![ContentPart::text(text)],
            metadata: Object::new(),
        }],
        mode: RunMode::Stream,
        durability: None,
        priority: 0,
        thread: args.thread.clone(),
        if_busy: IfBusy::default(),
        webhook: None,
        idempotency: None,
        model: args.model.clone(),
        overrides: OverrideChanges::default(),
        budget: ExecutionBudget::default(),
        metadata: Object::new(),
        variables: BTreeMap::new(),
        response_format: None,
        conflict: ConflictPolicy::Fork,
        on_disconnect: OnDisconnect::Cancel,
        limits: RunLimits::default(),
        events: EventOptions::default(),
    };
    let handle = app.runs.start(args.tenant.tenant.clone(), request).await?;
    let mut events = pin!(handle.into_events());
    let mut has_spoken = false;
    while let Some(followed) = events.next().await {
        let event = match followed {
            Followed::Event(event) => event,
            Followed::Dropped { reason } => bail!("the run can't be followed any more: {reason}"),
        };
        match &event.payload {
            RunEventPayload::Agent(event) => {
                let event: &AgentEvent = event;
                has_spoken |= matches!(event, AgentEvent::MessageDelta { .. });
                show(event, args.json)?;
            }
            RunEventPayload::Completed(record)
            | RunEventPayload::Stopped(record)
            | RunEventPayload::Failed(record)
            | RunEventPayload::Cancelled(record) => {
                if !args.json.json {
                    // Another process that worked on it may have kept the single words to itself.
                    let unsaid = if has_spoken {
                        String::new()
                    } else {
                        record.output_text()
                    };
                    print_line(unsaid)?;
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

fn show(event: &AgentEvent, json: JsonArgs) -> io::Result<()> {
    match event {
        AgentEvent::MessageDelta { .. } if json.json => Ok(()),
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
