//! `worker`: runs commands of agents that replicas have put into the queue, from start to shutdown.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use tokio::time::timeout;

use super::options::StoreArgs;
use super::output::print_line;
use super::serve::begin_log;
use crate::app::{CommandWorkerApp, Extensions};
use crate::config::Config;
use crate::lifecycle::StopSignals;
use values::causes::with_causes;

/// How long closing the store may take.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// Options of `worker`.
#[derive(Debug, clap::Args)]
pub(super) struct WorkerArgs {
    /// Runs the commands of agents. Workers for queued runs are `serve --role worker`.
    #[arg(long, required = true)]
    environments: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Runs commands until a signal.
pub(super) async fn work(args: WorkerArgs, extensions: Extensions) -> anyhow::Result<()> {
    let loaded = args.store.load()?;
    begin_log(&loaded)?;
    let config = &loaded.config;
    let app = CommandWorkerApp::build(config, extensions).await?;
    let worked = work_until_signal(&app, config).await;
    if timeout(CLOSE_PATIENCE, app.store.close()).await.is_err() {
        tracing::warn!("the connections to the store did not close in time");
    }
    worked
}

async fn work_until_signal(app: &CommandWorkerApp, config: &Config) -> anyhow::Result<()> {
    let opened = app.commands.open().await;
    let protections = opened.map_err(|error| anyhow!("commands can't run here: {}", with_causes(&error)))?;
    tracing::info!("sandbox: {protections}");
    let mut signals = StopSignals::listen()?;
    let (id, store) = (app.worker.id(), config.store.address());
    tracing::info!(worker_id = %id, "taking commands");
    let banner = print_line(format_args!(
        "agent-runtime {}\n  \
         worker        {id}: runs up to {} commands of agents at a time\n  \
         store         {store}",
        env!("CARGO_PKG_VERSION"),
        config.sandbox.worker_commands
    ));
    if let Err(error) = banner {
        // The worker also works without a reader of its output.
        tracing::debug!(error = error.to_string(), "the banner can't be printed");
    }
    let mut working = pin!(Arc::clone(&app.worker).run());
    let stopping = async {
        signals.next().await;
        let grace = config.runs.shutdown_grace;
        tracing::info!(
            shutdown_grace = ?grace,
            "stopping: no more commands are taken, those at work may finish within the grace, a second signal does \
             not wait for them"
        );
        tokio::select! {
            () = app.worker.drain() => (),
            _ = signals.next() => (),
            () = tokio::time::sleep(grace) => (),
        }
        let stopped = app.worker.shut_down().await;
        tracing::info!(stopped, "no command is left");
    };
    tokio::select! {
        // It could not begin.
        worked = &mut working => return Ok(worked?),
        () = stopping => (),
    }
    Ok(working.await?)
}
