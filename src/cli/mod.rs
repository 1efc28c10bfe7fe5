//! The commands. Each prints its result to standard output. Logs and errors go to standard error.

mod absent;
mod agents;
mod check_config;
mod files;
mod gc;
mod healthcheck;
mod keys;
mod output;
mod run;
mod runs;
mod serve;
mod sessions;
mod store;
mod tenants;
mod threads;
mod transfer;
mod worker;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};

use self::output::{EndedBySignal, print_line};
use crate::app::Extensions;
use crate::config::{self, Config, Loaded, Sources};
use crate::http;
use ::store::Store;
use values::clock::Timestamp;
use values::tenant::TenantId;

/// Runs LLM agents over immutable, forkable sessions.
#[derive(Debug, Parser)]
#[command(name = "agent-runtime", version, about)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Options of every command.
#[derive(Debug, clap::Args)]
struct Options {
    /// Reads this configuration file.
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Sets a configuration key, such as `http.listen=127.0.0.1:9000`.
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = config::parse_override)]
    overrides: Vec<(String, String)>,
    /// Serves on this address; short for `--set http.listen=…`.
    #[arg(long, global = true, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The store; short for `--set store.url=…`.
    #[arg(long, global = true, value_name = "URL")]
    store_url: Option<String>,
    /// Serves beyond loopback without any API key: every client that reaches the port may run
    /// agents.
    #[arg(long, global = true)]
    insecure_no_auth: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts the service; the default.
    Serve(ServeArgs),
    /// Runs commands of agents for replicas with `sandbox.backend = "worker"`.
    Worker(worker::WorkerArgs),
    /// Runs an agent once, streaming its output to the terminal.
    Run(run::RunArgs),
    /// Shows runs.
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    /// Shows sessions.
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Shows threads.
    #[command(subcommand)]
    Threads(threads::ThreadsCommand),
    /// Shows agents.
    #[command(subcommand)]
    Agents(agents::AgentsCommand),
    /// Brings the store's tables up to date.
    Migrate,
    /// Manages API keys.
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Removes expired data, by the configured rules.
    Gc(gc::GcArgs),
    /// Removes tenants.
    #[command(subcommand)]
    Tenants(tenants::TenantsCommand),
    /// Shows the configuration in force and where each value comes from, and checks it; fails if
    /// something would not work.
    CheckConfig,
    /// Prints the `OpenAPI` document.
    Openapi,
    /// Asks a running service for its health; for containers.
    Healthcheck(healthcheck::HealthcheckArgs),
}

/// Options of `serve`.
#[derive(Debug, Default, clap::Args)]
struct ServeArgs {
    /// The role of this process: `api`, `worker` or `all`; short for `--set queue.role=…`.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
}

/// How a command prints its findings, and the tenant of the data. A command that prints JSON in any
/// case takes the flag too.
#[derive(Debug, clap::Args)]
struct ReadArgs {
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// Works on this tenant's data.
    #[arg(long, default_value_t = TenantId::anonymous())]
    tenant: TenantId,
}

/// Writes a time for people.
fn moment(time: Timestamp) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// Parses the process's command line, runs the command and reports its failure.
pub fn main() -> ExitCode {
    main_with(std::env::args_os(), Extensions::default())
}

/// Does the same for a program that embeds the service with extensions. The first word is the
/// program's name.
pub fn main_with(words: impl IntoIterator<Item = OsString>, extensions: Extensions) -> ExitCode {
    let words: Vec<_> = words.into_iter().collect();
    if words.get(1).is_some_and(|word| word == sandbox::HELPER_ARGUMENT) {
        // A helper of the sandbox restricts its one thread, so it must come before all others.
        return sandbox::helper_main();
    }
    let cli = Cli::parse_from(words);
    match dispatch(cli, extensions) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            let signal = error.downcast_ref::<EndedBySignal>();
            signal.map_or(ExitCode::FAILURE, |signal| ExitCode::from(signal.exit_code()))
        }
    }
}

fn dispatch(cli: Cli, extensions: Extensions) -> anyhow::Result<()> {
    match cli.command.unwrap_or_else(|| Command::Serve(ServeArgs::default())) {
        Command::Openapi => Ok(print_line(http::openapi().to_pretty_json()?)?),
        Command::Healthcheck(args) => healthcheck::check(&load(cli.options)?.config, args),
        Command::CheckConfig => block_on(check_config::check(&load(cli.options)?, extensions)),
        Command::Serve(args) => block_on(serve::serve(load(cli.options.with_role(args.role))?, extensions)),
        Command::Worker(_) => block_on(worker::work(load(cli.options)?, extensions)),
        Command::Run(args) => block_on(run::run(load(cli.options)?, args, extensions)),
        Command::Runs(command) => on_store(cli.options, async |_, store| runs::inspect(store, command).await),
        Command::Threads(command) => on_store(cli.options, async |_, store| threads::inspect(store, command).await),
        Command::Agents(command) => on_store(cli.options, async |config, store| {
            agents::inspect(config, store, command, extensions).await
        }),
        Command::Sessions(command) => on_store(cli.options, async |config, store| {
            sessions::inspect(config, store, command, extensions).await
        }),
        Command::Migrate => block_on(store::migrate(&load(cli.options)?.config)),
        Command::Gc(args) => on_store(cli.options, async |config, store| {
            gc::collect(config, store, args).await
        }),
        Command::Tenants(command) => on_store(cli.options, async |config, store| {
            tenants::manage(config, store, command).await
        }),
        Command::Keys(command) => block_on(keys::manage(&load(cli.options)?.config, command)),
    }
}

impl Options {
    fn with_role(mut self, role: Option<String>) -> Self {
        self.overrides.extend(role.map(|role| ("queue.role".to_owned(), role)));
        self
    }
}

fn load(options: Options) -> Result<Loaded, config::ConfigError> {
    let insecure = options.insecure_no_auth.then(|| "true".to_owned());
    let flags = [
        ("http.listen", options.listen),
        ("store.url", options.store_url),
        ("http.insecure_no_auth", insecure),
    ];
    let flags = flags
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let overrides = options.overrides.into_iter().chain(flags).collect();
    config::load(&Sources::from_process(options.config, overrides))
}

/// Runs a command against the configured store, which must exist.
fn on_store(
    options: Options,
    command: impl AsyncFnOnce(&Config, &Arc<dyn Store>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let config = load(options)?.config;
    block_on(async {
        let store = store::open_existing(&config).await?;
        let done = command(&config, &store).await;
        store.close().await;
        done
    })
}

fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(command);
    // A thread that resolves a host name can't be stopped. It must not delay the exit.
    runtime.shutdown_background();
    done
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_are_overrides() {
        let parse = |words: &[&str]| Cli::try_parse_from(words.iter().copied()).map(|cli| cli.options);
        let words = [
            "agent-runtime",
            "--set",
            "http.listen=127.0.0.1:1",
            "serve",
            "--listen",
            "127.0.0.1:2",
            "--insecure-no-auth",
        ];
        let config = load(parse(&words).unwrap()).unwrap().config;
        assert_eq!(config.http.listen.port(), 2, "a flag of its own wins over --set");
        assert!(config.http.is_exposed);
        assert!(parse(&["agent-runtime", "--set", "http.listen"]).is_err());
    }
}
