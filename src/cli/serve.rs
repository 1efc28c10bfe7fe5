//! `serve`: the service, from start to shutdown.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::certificates;
use super::output::print_line;
use crate::app::{self, App, Extensions};
use crate::config::{Config, Loaded};
use crate::http::{self, Interface};
use crate::lifecycle::{ReloadSignals, StopSignals};
use crate::run::process;
use crate::run::reloads::ReloadFollower;
use crate::run::settings::ProcessRole;
use crate::telemetry;
use values::causes::with_causes;

/// How long callers may take to read their responses after the last run has ended.
const RESPONSE_GRACE: Duration = Duration::from_secs(2);

/// Serves until a signal.
pub(super) async fn serve(loaded: Loaded, extensions: Extensions) -> anyhow::Result<()> {
    begin_log(&loaded)?;
    let config = &loaded.config;
    let app = App::build(config, extensions).await?;
    warn_of_missing_keys(&app);
    if app.runs_commands_here && app.commands.is_required() {
        let opened = app.commands.open().await;
        opened.map_err(|error| {
            anyhow!(
                "commands can't run as the configuration demands: {}",
                with_causes(&error)
            )
        })?;
    }
    let served = serve_app(&app, config).await;
    app.disconnect().await;
    served
}

/// Begins to log, and warns of variables without an effect.
pub(super) fn begin_log(loaded: &Loaded) -> anyhow::Result<()> {
    telemetry::init(&loaded.config.log)?;
    for unread in &loaded.unread_variables {
        let (key, set_by) = unread.overridden.clone().unzip();
        tracing::warn!(
            variable = unread.variable,
            meant = unread.meant,
            key,
            set_by = set_by.map(tracing::field::display),
            "a variable has no effect"
        );
    }
    Ok(())
}

async fn serve_app(app: &App, config: &Config) -> anyhow::Result<()> {
    let has_keys = app.tokens.is_some() || app.runs.store.key_exists().await?;
    app::require_keys_beyond_loopback(has_keys, config)?;
    let tls = certificates::load(&config.tls, app)?;
    let listener = TcpListener::bind(config.http.listen).await;
    let listener = listener.with_context(|| {
        let listen = config.http.listen;
        format!("can't listen on {listen} (another address is chosen with --listen or the key `http.listen`)")
    })?;
    let address = listener.local_addr()?;
    let metrics_listener = listen_for_metrics(config).await?;
    let (signals, reloads) = (StopSignals::listen()?, ReloadSignals::listen()?);
    let tls_reloads = ReloadSignals::listen()?;
    tracing::info!(%address, "listening");
    if let Err(error) = print_banner(app, config, address, has_keys) {
        // The service also works without a reader of its output.
        tracing::debug!(error = error.to_string(), "the banner can't be printed");
    }
    let limits = config.http.clone();
    let interface = if config.queue.role == ProcessRole::Worker {
        http::probe_interface(Arc::clone(&app.runs), &limits)
    } else {
        let (mcp, openai) = (app.mcp.clone(), Arc::clone(&app.openai));
        let tokens = app.tokens.clone();
        http::interface(Arc::clone(&app.runs), tokens, mcp, openai, &config.console, &limits)
    };
    let interface = interface.with_tls(tls.clone());
    app.begin();
    let stop = CancellationToken::new();
    let working = async {
        let mut serving = pin!(http::serve(listener, interface.clone(), stop.clone()));
        let mut ending = pin!(end_runs(app, &interface, signals, &stop, config));
        tokio::select! {
            () = &mut serving => ending.await,
            // All runs have ended, so only responses are still being sent.
            () = &mut ending => if timeout(RESPONSE_GRACE, serving).await.is_err() {
                tracing::warn!("closing connections that are still open: their callers have not sent or read all");
            },
            never = async {
                report_sandbox(app).await;
                reload_agents(app, reloads).await
            } => match never {},
            never = certificates::reload(app, tls, tls_reloads) => match never {},
        }
    };
    // Metrics can be read until the last run has ended.
    tokio::select! {
        () = working => (),
        never = serve_metrics(metrics_listener, &interface) => match never {},
    }
    Ok(())
}

async fn listen_for_metrics(config: &Config) -> anyhow::Result<Option<(TcpListener, SocketAddr)>> {
    let Some(listen) = config.metrics.listen else {
        return Ok(None);
    };
    let listener = TcpListener::bind(listen).await;
    let listener = listener.with_context(|| format!("can't show metrics on {listen} (`metrics.listen`)"))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "showing metrics");
    Ok(Some((listener, address)))
}

async fn serve_metrics(listener: Option<(TcpListener, SocketAddr)>, interface: &Interface) -> Infallible {
    if let Some((listener, address)) = listener {
        http::serve(listener, interface.measuring(address), CancellationToken::new()).await;
    }
    std::future::pending().await
}

/// Logs the isolation of commands, or the reason why they can't run.
async fn report_sandbox(app: &App) {
    if !app.runs_commands_here {
        tracing::info!("sandbox: commands run at workers (`agent-runtime worker --environments`)");
        return;
    }
    match app.commands.open().await {
        Ok(protections) => tracing::info!("sandbox: {protections}"),
        Err(error) => tracing::warn!(
            error = &error as &dyn std::error::Error,
            "commands can't run here, so calls of the tool `shell` fail"
        ),
    }
}

/// Reloads the files of agents at each signal, and after each reload at another process.
async fn reload_agents(app: &App, mut signals: ReloadSignals) -> Infallible {
    let mut elsewhere = ReloadFollower::new(Arc::clone(&app.runs), app.acts_before);
    loop {
        tokio::select! {
            () = signals.next() => (),
            () = elsewhere.next() => tracing::info!("another process has read the files of agents again"),
        }
        let reloaded = app.runs.agents.reload().await;
        elsewhere.reloaded(reloaded.as_deref().ok());
        match reloaded {
            Ok(agents) => {
                tracing::info!(agents = agents.len(), "the files of agents were read again");
                warn_of_missing_keys(app);
            }
            Err(error) => tracing::error!(
                error = &error as &dyn std::error::Error,
                "the files of agents can't be used, so the agents stay as they were"
            ),
        }
    }
}

fn warn_of_missing_keys(app: &App) {
    for (agent, error) in app.runs.agents.keyless() {
        tracing::warn!(agent, error = &error as &dyn std::error::Error, "an agent can't work");
    }
}

/// Waits for a signal, then for `shutdown.drain_delay`, and lets runs finish within the grace
/// period. A second signal ends the delay, and one more cancels the runs.
async fn end_runs(
    app: &App,
    interface: &Interface,
    mut signals: StopSignals,
    stop: &CancellationToken,
    config: &Config,
) {
    signals.next().await;
    let (drain_delay, grace) = (config.drain.drain_delay, config.runs.shutdown_grace);
    // Nobody sends requests to a worker.
    if !drain_delay.is_zero() && config.queue.role != ProcessRole::Worker {
        interface.begin_drain();
        tracing::info!(
            ?drain_delay,
            "stopping: /readyz reports it, and requests are still served; another signal ends the delay"
        );
        tokio::select! {
            () = tokio::time::sleep(drain_delay) => (),
            _ = signals.next() => (),
        }
    }
    let runs = process::active_runs(&app.runs);
    tracing::info!(
        runs,
        shutdown_grace = ?grace,
        "stopping: no new requests, runs may finish within the grace, a second signal does not wait for them"
    );
    stop.cancel();
    tokio::select! {
        () = process::shut_down(&app.runs, grace) => (),
        _ = signals.next() => {
            tracing::info!("stopping at once: runs are cancelled");
            process::shut_down(&app.runs, Duration::ZERO).await;
        }
    }
}

fn print_banner(app: &App, config: &Config, address: SocketAddr, has_keys: bool) -> std::io::Result<()> {
    let agents: Vec<String> = app.runs.agents.configured().keys().cloned().collect();
    let key = if has_keys {
        r#"-H "authorization: Bearer $AGENT_RUNTIME_KEY" "#
    } else {
        ""
    };
    let scheme = if config.tls.is_on() { "https" } else { "http" };
    let body = r#"{"agent": "demo", "input": "What is 17 * 23?"}"#;
    let (version, store, agents) = (env!("CARGO_PKG_VERSION"), config.store.address(), agents.join(", "));
    if config.queue.role == ProcessRole::Worker {
        return print_line(format_args!(
            "agent-runtime {version}\n  \
             listening on  {scheme}://{address}  (probes only: /healthz and /readyz)\n  \
             role          worker: takes runs from the queue; the API is at replicas of the role api or all\n  \
             store         {store}\n  \
             agents        {agents}"
        ));
    }
    let console = if config.console.is_served(config.http.listen) {
        format!("  console       {scheme}://{address}/console\n")
    } else {
        String::new()
    };
    print_line(format_args!(
        "agent-runtime {version}\n  \
         listening on  {scheme}://{address}  (API: {scheme}://{address}/docs)\n\
         {console}  \
         store         {store}\n  \
         agents        {agents}\n\
         Try:\n  \
         curl -sS {scheme}://{address}/v1/runs {key}-H 'content-type: application/json' -d '{body}'"
    ))
}
