//! `runs`: shows runs.

use anyhow::bail;
use clap::Subcommand;
use serde::Deserialize;

use super::item::Item;
use super::output::{moment, print_items, print_json};
use super::source::{ReadArgs, Source};
use crate::run::refusal::no_run;
use agent::record::{RunStatus, RunSummaryView, RunView, ThreadName};
use store::Page;
use store::runs::RunFilter;
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::model_ref::ModelRef;

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

/// The fields of a run that a row shows.
#[derive(Deserialize)]
struct RunFields {
    run_id: RunId,
    created_at: Timestamp,
    status: String,
    agent: String,
    step_count: u64,
    usage: UsageFields,
    thread: Option<String>,
}

#[derive(Deserialize)]
struct UsageFields {
    total_tokens: u64,
}

/// Runs the command.
pub(super) async fn inspect(command: RunsCommand) -> anyhow::Result<()> {
    match command {
        RunsCommand::List(args) => {
            let ReadArgs { json, source } = args.read.clone();
            source
                .with(async |source| {
                    let runs = list(source, args).await?;
                    let heading = ["RUN", "CREATED", "STATUS", "AGENT", "STEPS", "TOKENS", "THREAD"];
                    print_items(json, &runs, heading, row)
                })
                .await
        }
        RunsCommand::Show { run_id, read } => read.source.with(async |source| show(source, run_id).await).await,
    }
}

async fn show(source: &Source<'_>, run_id: RunId) -> anyhow::Result<()> {
    let (store, tenant) = match source {
        Source::Store { store, tenant, .. } => (store, tenant),
        Source::Service(service) => return print_json(&service.get_json(&format!("/v1/runs/{run_id}")).await?),
    };
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

async fn list(source: &Source<'_>, args: ListArgs) -> anyhow::Result<Vec<Item<RunFields>>> {
    match source {
        Source::Store { store, tenant, .. } => {
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
            let runs = store.run_list(tenant, &filter, page).await?;
            Ok(Item::all(runs.into_iter().map(RunSummaryView::from))?)
        }
        Source::Service(service) => {
            let filters = [
                ("status", args.status.map(|status| status.to_string())),
                ("agent", args.agent),
                ("model", args.model.map(|model| model.to_string())),
                ("thread", args.thread.map(|thread| thread.to_string())),
            ];
            Ok(service.list("/v1/runs", &filters, args.limit as usize).await?)
        }
    }
}

fn row(run: &RunFields) -> [String; 7] {
    [
        run.run_id.to_string(),
        moment(run.created_at),
        run.status.clone(),
        run.agent.clone(),
        run.step_count.to_string(),
        run.usage.total_tokens.to_string(),
        run.thread.clone().unwrap_or_default(),
    ]
}
