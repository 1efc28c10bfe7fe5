//! `gc`: sweeps once what is not kept any more, or tells what would go.

use super::output::print_line;
use crate::app;
use crate::config::Config;
use crate::store::RemovalFigures;

/// How to sweep.
#[derive(Debug, clap::Args)]
pub(super) struct GcArgs {
    /// Removes nothing and tells what would go.
    #[arg(long)]
    dry_run: bool,
}

/// Sweeps the configured store by the configured rules.
pub(super) async fn collect(config: Config, args: GcArgs) -> anyhow::Result<()> {
    let store = app::open_store(&config).await?;
    let sweeper = app::sweeper(store.clone(), &config);
    let figures = if args.dry_run {
        sweeper.plan().await
    } else {
        sweeper.sweep().await
    };
    store.close().await;
    print_figures(figures?, if args.dry_run { "would remove" } else { "removed" })
}

fn print_figures(figures: RemovalFigures, verb: &str) -> anyhow::Result<()> {
    print_line(format_args!("{verb}:"))?;
    for (name, figure) in [
        ("sessions", figures.sessions),
        ("history segments", figures.segments),
        ("states", figures.states),
        ("runs", figures.runs),
        ("run events", figures.events),
        ("messages to runs", figures.messages),
        ("deliveries", figures.deliveries),
        ("idempotency keys", figures.idempotency_keys),
        ("bytes", figures.bytes),
    ] {
        print_line(format_args!("  {name:<16}  {figure}"))?;
    }
    Ok(())
}
