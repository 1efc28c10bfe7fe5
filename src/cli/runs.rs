//! `runs`: shows stored runs.

use std::sync::Arc;

use anyhow::bail;
use clap::Subcommand;

use super::output::{print_json, print_list};
use super::{ReadArgs, moment};
use crate::run::refusal::no_run;
use agent::record::{RunStatus, RunSummary, RunSummaryView, RunView, ThreadName};
use store::runs::RunFilter;
use store::{Page, Store};
use values::ids::{RunId, SessionId};
use values::model_ref::ModelRef;
use values::tenant::TenantId;

/// The commands about runs.
#[derive(Debug, Subcommand)]
pub(super) enum RunsCommand {
    /// Lists runs, newest first. A light run is stored when it has ended.
    List(ListArgs),
    /// Prints a run with its output as JSON.
    Show {
        /// The run.
        run_id: RunId,
        #[command(flatten)]
        read: ReadArgs,
    },
}

/// The runs to list.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only of this status.
    #[arg(long)]
    status: Option<RunStatus>,
    /// Only of this agent.
    #[arg(long)]
    agent: Option<String>,
    /// Only with this model, as PROVIDER/MODEL.
    #[arg(long)]
    model: Option<ModelRef>,
    /// Only on this thread.
    #[arg(long)]
    thread: Option<ThreadName>,
    /// The most runs.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command against the store.
pub(super) async fn inspect(store: &Arc<dyn Store>, command: RunsCommand) -> anyhow::Result<()> {
    match command {
        RunsCommand::List(args) => list(&**store, args).await,
        RunsCommand::Show { run_id, read } => show(&**store, &read.tenant, run_id).await,
    }
}

async fn show(store: &dyn Store, tenant: &TenantId, run_id: RunId) -> anyhow::Result<()> {
    if let Some(run) = store.run_lookup(tenant, run_id).await? {
        return print_json(&RunView::from(run));
    }
    let session_id = SessionId::from_uuid(run_id.as_uuid());
    if let Some(session) = store.session_lookup(tenant, session_id).await? {
        bail!(no_run(run_id, Some(&session)));
    }
    // A light run is not stored before its end, so only its own process knows it.
    bail!(
        "the store has no run {run_id}: there is none, or it is a light run, which is stored at its end: while it is at work, its service \
         shows it, GET /v1/runs/{run_id}"
    )
}

async fn list(store: &dyn Store, args: ListArgs) -> anyhow::Result<()> {
    let filter = RunFilter {
        statuses: args.status.into_iter().collect(),
        agent: args.agent,
        model: args.model,
        thread: args.thread,
        ..RunFilter::default()
    };
    let page = Page {
        before: None,
        limit: args.limit,
    };
    let runs = store.run_list(&args.read.tenant, &filter, page).await?;
    let heading = ["RUN", "CREATED", "STATUS", "AGENT", "STEPS", "TOKENS", "THREAD"];
    print_list(args.read.json, runs, RunSummaryView::from, heading, row)
}

fn row(run: &RunSummary) -> [String; 7] {
    [
        run.run_id.to_string(),
        moment(run.created_at),
        run.status.to_string(),
        run.agent.clone(),
        run.step_count.to_string(),
        run.usage.total_tokens.to_string(),
        run.thread.as_ref().map_or_else(String::new, ToString::to_string),
    ]
}
