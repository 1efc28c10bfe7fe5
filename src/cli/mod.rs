//! The commands. Each prints its result to standard output. Logs and errors go to standard error.

mod absent;
mod after_restore;
mod agents;
mod audit;
mod certificates;
mod check_config;
mod files;
mod gc;
mod healthcheck;
mod item;
mod keys;
mod options;
mod output;
mod progress;
mod requester;
mod run;
mod runs;
mod serve;
mod service;
mod sessions;
mod source;
mod store;
mod tenants;
mod threads;
mod tokens;
mod transfer;
mod worker;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

use self::options::{ServeArgs, StoreArgs};
use self::output::{EndedBySignal, print_bytes, print_line};
use crate::app::Extensions;
use crate::http;

/// The name of the program.
const NAME: &str = "agent-runtime";

/// The exit code for a wrong use of the command line, as clap has it.
const USAGE: u8 = 2;

/// Runs LLM agents over immutable, forkable sessions.
#[derive(Debug, Parser)]
#[command(name = NAME, version, about, args_conflicts_with_subcommands = true)]
struct Cli {
    /// Without a command, the flags are those of `serve`.
    #[command(flatten)]
    serve: ServeArgs,
    #[command(subcommand)]
    command: Option<Command>,
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
    Migrate(StoreArgs),
    /// Manages API keys.
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Manages tokens of identity providers.
    #[command(subcommand)]
    Tokens(tokens::TokensCommand),
    /// Shows the audit log, and checks that nobody has changed it.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Prepares a store that was restored from a backup, before services use it.
    AfterRestore(StoreArgs),
    /// Removes expired data, by the configured rules.
    Gc(gc::GcArgs),
    /// Removes tenants.
    #[command(subcommand)]
    Tenants(tenants::TenantsCommand),
    /// Shows the configuration in force and where each value comes from, and checks it; fails if
    /// something would not work.
    CheckConfig(StoreArgs),
    /// Prints the `OpenAPI` document.
    Openapi,
    /// Prints a script with which a shell completes commands and flags.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Asks a running service for its health; for containers.
    Healthcheck(healthcheck::HealthcheckArgs),
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
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(usage) = error.downcast_ref::<clap::Error>() {
                // If standard error is closed, there is no other output.
                let _ = usage.print();
                return ExitCode::from(USAGE);
            }
            output::print_error(&error);
            let signal = error.downcast_ref::<EndedBySignal>();
            signal.map_or(ExitCode::FAILURE, |signal| ExitCode::from(signal.exit_code()))
        }
    }
}

fn dispatch(cli: Cli, extensions: Extensions) -> anyhow::Result<ExitCode> {
    match cli.command.unwrap_or(Command::Serve(cli.serve)) {
        Command::Run(args) => return block_on(run::run(args, extensions)),
        Command::Openapi => print_line(http::openapi().to_pretty_json()?)?,
        Command::Completions { shell } => print_completions(shell)?,
        Command::Healthcheck(args) => healthcheck::check(args)?,
        Command::CheckConfig(store) => block_on(check_config::check(&store.load()?, extensions))?,
        Command::Serve(args) => block_on(serve::serve(args.load()?, extensions))?,
        Command::Worker(args) => block_on(worker::work(args, extensions))?,
        Command::Runs(command) => block_on(runs::inspect(command))?,
        Command::Threads(command) => block_on(threads::inspect(command))?,
        Command::Agents(command) => block_on(agents::inspect(command, extensions))?,
        Command::Sessions(command) => block_on(sessions::inspect(command, extensions))?,
        Command::Migrate(store) => block_on(store::migrate(&store.load()?.config))?,
        Command::Gc(args) => block_on(gc::collect(args))?,
        Command::Tenants(command) => block_on(tenants::manage(command))?,
        Command::AfterRestore(store) => block_on(after_restore::prepare(store))?,
        Command::Audit(command) => block_on(audit::inspect(command))?,
        Command::Keys(command) => block_on(keys::manage(command))?,
        Command::Tokens(command) => block_on(tokens::manage(command))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the script for a shell.
fn print_completions(shell: Shell) -> std::io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    print_bytes(&script)
}

fn block_on<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(command);
    // A thread that resolves a host name or reads from a terminal can't be stopped. It must not
    // delay the exit.
    runtime.shutdown_background();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags that every command has.
    const ALWAYS: [&str; 2] = ["help", "version"];
    const SETTINGS: &[&str] = &["config", "set"];
    const STORE: &[&str] = &["config", "set", "store-url"];
    const SERVE: &[&str] = &["config", "set", "store-url", "listen", "insecure-no-auth", "role"];
    const SOURCE: &[&str] = &["url", "key", "tenant", "config", "set", "store-url"];
    const READ: &[&str] = &["json", "url", "key", "tenant", "config", "set", "store-url"];

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_are_overrides() {
        let parse = |words: &[&str]| Cli::try_parse_from(words.iter().copied());
        let flags = [
            "--set",
            "http.listen=127.0.0.1:1",
            "--listen",
            "127.0.0.1:2",
            "--insecure-no-auth",
        ];
        for command in [&["agent-runtime"][..], &["agent-runtime", "serve"]] {
            let cli = parse(&[command, &flags].concat()).unwrap();
            let Command::Serve(args) = cli.command.unwrap_or(Command::Serve(cli.serve)) else {
                panic!("{command:?} does not serve");
            };
            let config = args.load().unwrap().config;
            assert_eq!(config.http.listen.port(), 2, "a flag of its own wins over --set");
            assert!(config.http.is_exposed);
        }
        assert!(parse(&["agent-runtime", "--set", "http.listen"]).is_err());
        assert!(parse(&["agent-runtime", "--listen", "127.0.0.1:2", "runs", "list"]).is_err());
    }

    #[test]
    fn each_command_has_the_flags_that_mean_something_to_it() {
        let list: &[&str] = &["status", "agent", "model", "thread", "limit"];
        let run: &[&str] = &["base", "thread", "if-busy", "deny-open", "agent", "model"];
        let create: &[&str] = &["tenant", "scope", "label"];
        let limits: &[&str] = &[
            "max-steps",
            "max-tokens",
            "max-seconds",
            "max-cost",
            "max-cost-per-day",
            "max-cost-per-month",
            "agents",
            "models",
            "providers",
        ];
        let expected: &[(&str, &[&[&str]])] = &[
            ("", &[SERVE]),
            ("serve", &[SERVE]),
            ("worker", &[STORE, &["environments"]]),
            ("run", &[READ, run]),
            ("runs list", &[READ, list]),
            ("runs show", &[READ]),
            ("sessions list", &[READ, &["agent", "thread", "tips", "limit"]]),
            ("sessions show", &[READ]),
            ("sessions tree", &[SOURCE]),
            ("sessions files", &[READ, &["recursive"]]),
            ("sessions export", &[STORE, &["tenant", "url", "output"]]),
            ("sessions import", &[STORE, &["tenant", "url"]]),
            ("sessions diff", &[READ]),
            ("threads list", &[READ]),
            ("threads show", &[READ]),
            ("agents list", &[READ]),
            ("agents show", &[READ]),
            ("migrate", &[STORE]),
            ("keys create", &[STORE, create, limits]),
            ("keys list", &[STORE, &["json"]]),
            ("keys revoke", &[STORE]),
            ("tokens revoke", &[STORE, &["issuer", "sub", "before"]]),
            ("audit list", &[STORE, &["tenant", "limit", "json"]]),
            ("audit export", &[STORE, &["tenant"]]),
            ("audit verify", &[STORE]),
            ("after-restore", &[STORE]),
            ("gc", &[STORE, &["dry-run", "json"]]),
            ("tenants delete", &[STORE, &["yes"]]),
            ("check-config", &[STORE]),
            ("openapi", &[]),
            ("completions", &[]),
            ("healthcheck", &[SETTINGS, &["url"]]),
        ];
        let mut cli = Cli::command();
        cli.build();
        let mut found = Vec::new();
        collect_flags(&cli, "", &mut found);
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, flags)| (*name, sorted(flags.concat())))
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|(name, flags)| (name.as_str(), sorted(flags.clone())))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_command_only_reads_or_its_acts_are_recorded() {
        /// Commands with an entry in the audit log. `tests/suite/process/audit.rs` runs each.
        const ACTS: [&str; 6] = [
            "keys create",
            "keys revoke",
            "tokens revoke",
            "after-restore",
            "gc",
            "tenants delete",
        ];
        const READ: [&str; 9] = [
            "list",
            "show",
            "tree",
            "files",
            "diff",
            "export",
            "verify",
            "openapi",
            "completions",
        ];
        /// What these do is in their records: runs, imported sessions, versions of the schema.
        const RECORDED: [&str; 5] = ["serve", "worker", "run", "import", "migrate"];
        const CHECKS: [&str; 2] = ["check-config", "healthcheck"];
        let mut cli = Cli::command();
        cli.build();
        let mut found = Vec::new();
        collect_flags(&cli, "", &mut found);
        for (name, _) in found.iter().filter(|(name, _)| !ACTS.contains(&name.as_str())) {
            let verb = name.split(' ').next_back().unwrap();
            let known = [&READ[..], &RECORDED, &CHECKS].concat();
            assert!(verb.is_empty() || known.contains(&verb), "{name} has no entry");
        }
    }

    fn sorted(mut flags: Vec<&str>) -> Vec<&str> {
        flags.sort_unstable();
        flags
    }

    /// Adds the flags of a command, and of those below it.
    fn collect_flags<'a>(command: &'a clap::Command, name: &str, found: &mut Vec<(String, Vec<&'a str>)>) {
        let flags = command.get_arguments().filter_map(clap::Arg::get_long);
        let flags: Vec<_> = flags.filter(|flag| !ALWAYS.contains(flag)).collect();
        let below: Vec<_> = command
            .get_subcommands()
            .filter(|below| below.get_name() != "help")
            .collect();
        if below.is_empty() || name.is_empty() {
            found.push((name.to_owned(), flags));
        }
        for below in below {
            collect_flags(below, format!("{name} {}", below.get_name()).trim_start(), found);
        }
    }
}
