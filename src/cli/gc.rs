//! `gc`: removes expired data once, or shows the data that it would remove.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::options::StoreArgs;
use super::output::{JsonArgs, print_json, print_line, print_note};
use super::progress::Progress;
use super::requester::requester;
use super::store::on_existing;
use crate::app;
use crate::config::Config;
use store::Store;
use store::audit::{Act, AuditAction};
use store::retention::RemovalFigures;

/// How to sweep.
#[derive(Debug, clap::Args)]
pub(super) struct GcArgs {
    /// Removes nothing, and reports the data that would be removed.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    store: StoreArgs,
}

/// Sweeps the store by the configured rules.
pub(super) async fn collect(args: GcArgs) -> anyhow::Result<()> {
    let GcArgs { dry_run, json, store } = args;
    on_existing(store, async |config, store| sweep(config, store, dry_run, json).await).await
}

async fn sweep(config: &Config, store: &Arc<dyn Store>, dry_run: bool, json: JsonArgs) -> anyhow::Result<()> {
    if config.retention.max_age.is_none() && config.retention.keep_last.is_none() {
        print_note(
            "retention is off: neither `retention.max_age` nor `retention.keep_last` is set, so sessions and their runs are never removed",
        )?;
    }
    let sweeper = app::sweeper(Arc::clone(store), config);
    let figures = if dry_run {
        sweeper.plan().await?
    } else {
        let act = Act::of_service(&requester(), AuditAction::SweepStarted, "all tenants");
        store.audit_insert(&act).await?;
        let mut progress = Progress::begin();
        let show = |removed: &RemovalFigures| {
            let figures = || format!("removed {} sessions, {} runs", removed.sessions, removed.runs);
            progress.show(figures, removed.bytes);
        };
        sweeper.sweep_with(show).await?
    };
    print_figures(figures, dry_run, json)
}

fn print_figures(figures: RemovalFigures, dry_run: bool, JsonArgs { json }: JsonArgs) -> anyhow::Result<()> {
    let figures = [
        ("sessions", figures.sessions),
        ("history segments", figures.segments),
        ("states", figures.states),
        ("runs", figures.runs),
        ("run events", figures.events),
        ("messages to runs", figures.messages),
        ("deliveries", figures.deliveries),
        ("idempotency keys", figures.idempotency_keys),
        ("commands for workers", figures.commands),
        ("console sessions", figures.console_sessions),
        ("contents", figures.contents),
        ("bytes", figures.bytes),
    ];
    if json {
        let figures: BTreeMap<_, _> = figures.map(|(name, figure)| (name.replace(' ', "_"), figure)).into();
        return print_json(&figures);
    }
    let verb = if dry_run { "would remove" } else { "removed" };
    print_line(format_args!("{verb}:"))?;
    for (name, figure) in figures {
        print_line(format_args!("  {name:<16}  {figure}"))?;
    }
    Ok(())
}
