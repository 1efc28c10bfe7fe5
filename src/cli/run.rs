//! `run`: one run against the configured store, streamed to the terminal.

use std::collections::BTreeMap;
use std::pin::pin;

use anyhow::{anyhow, bail};
use tokio_stream::StreamExt as _;

use super::TenantArgs;
use super::output::{print_line, print_note, print_piece};
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
use crate::record::{RunEventPayload, RunMode, RunRecord, RunStatus};
use crate::run::{EventOptions, Followed, InputMessage, OnDisconnect, OverrideChanges, RunRequest};
use crate::store::{ConflictPolicy, IfBusy};

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// What to say to the agent.
    text: String,
    /// Continues this session.
    #[arg(long, value_name = "SESSION")]
    base: Option<SessionId>,
    /// Runs this agent.
    #[arg(long)]
    agent: Option<String>,
    /// Uses this model, as PROVIDER/MODEL.
    #[arg(long)]
    model: Option<ModelRef>,
    #[command(flatten)]
    tenant: TenantArgs,
}

/// Runs an agent once.
pub(super) async fn run(config: Config, args: RunArgs, extensions: Extensions) -> anyhow::Result<()> {
    let app = App::build_with(&config, extensions).await?;
    let mut signals = StopSignals::listen()?;
    let followed = tokio::select! {
        followed = follow(&app, args) => followed,
        // Leaving cancels the run, whose record is stored below.
        () = signals.next() => Err(anyhow!("interrupted")),
    };
    tokio::select! {
        () = app.close(config.runs.shutdown_grace) => (),
        () = signals.next() => (),
    }
    let record = followed?;
    let summary = &record.summary;
    print_note(format_args!("run {}  status {}", summary.run_id, summary.status))?;
    match &summary.error {
        Some(error) => bail!("{}: {}", error.code, error.message),
        None if summary.status == RunStatus::Cancelled => bail!("the run was cancelled"),
        None => Ok(print_note(format_args!("continue with --base {}", summary.session_id))?),
    }
}

async fn follow(app: &App, args: RunArgs) -> anyhow::Result<RunRecord> {
    let request = RunRequest {
        base_session_id: args.base,
        agent: args.agent,
        input: vec![InputMessage {
            role: Role::User,
            name: None,
            section: Section::default(),
            content: vec![ContentPart::text(args.text)],
            metadata: Object::new(),
        }],
        mode: RunMode::Stream,
        durability: None,
        priority: 0,
        thread: None,
        if_busy: IfBusy::default(),
        webhook: None,
        idempotency: None,
        model: args.model,
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
    let handle = app.runs.start(args.tenant.tenant, request).await?;
    let mut events = pin!(handle.into_events());
    while let Some(followed) = events.next().await {
        let event = match followed {
            Followed::Event(event) => event,
            Followed::Dropped { reason } => bail!("the run can't be followed any more: {reason}"),
        };
        match &event.payload {
            RunEventPayload::Agent(event) => show(event)?,
            RunEventPayload::Completed(record)
            | RunEventPayload::Stopped(record)
            | RunEventPayload::Failed(record)
            | RunEventPayload::Cancelled(record) => {
                print_line("")?;
                return Ok((**record).clone());
            }
            RunEventPayload::Started(_)
            | RunEventPayload::Resumed { .. }
            | RunEventPayload::SessionCommitted { .. } => (),
        }
    }
    bail!("the run ended without a result")
}

fn show(event: &AgentEvent) -> std::io::Result<()> {
    match event {
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
