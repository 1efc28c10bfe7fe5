//! Tries to break the promises about runs, and counts what it finds: replicas are killed and
//! frozen, servers are restarted and emptied, connections are cut, while callers start runs, follow
//! them and control them. Afterwards every run, session, event and effect is checked.
//!
//!     scripts/faults
//!     scripts/faults --runs 1000 --kills 200 --seed 7
//!
//! The same seed gives the same requests and the same mishaps, though not at the same moments. A
//! violation is printed with its seed and the run's facts, and ends the program with a failure.

mod caller;
mod chaos;
mod checks;
mod client;
mod facts;
mod fleet;
mod ledger;
mod leftovers;
mod process;
mod proxy;
mod random;
mod replica;
mod report;
mod request;
mod servers;
mod statements;
mod stream;
mod suite;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

/// The options of the suite.
#[derive(Debug, Clone, Parser)]
#[command(name = "faults")]
pub(crate) struct Options {
    /// How many runs are asked for.
    #[arg(long, default_value_t = 60)]
    runs: u64,
    /// How often a replica is killed. The other mishaps come in proportion.
    #[arg(long, default_value_t = 8)]
    kills: u64,
    /// Names requests and mishaps; another one each time unless it is given.
    #[arg(long)]
    seed: Option<u64>,
    /// How many callers work at the same time.
    #[arg(long, default_value_t = 16)]
    callers: u64,
    /// The middle pause between two mishaps.
    #[arg(long, default_value = "700ms", value_parser = humantime::parse_duration)]
    pause: Duration,
    /// How long a run may take after the last mishap before it counts as stuck.
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration)]
    patience: Duration,
    /// Lets nothing happen to anybody: the same load in peace.
    #[arg(long)]
    peaceful: bool,
    /// Prints the table as Markdown.
    #[arg(long)]
    markdown: bool,
    /// A folder for everything, which the user of the servers can write to.
    #[arg(long)]
    folder: PathBuf,
    /// The folder of PostgreSQL's programs.
    #[arg(long)]
    postgres_bin: PathBuf,
    /// Words put before a server's command line, separated by blanks.
    #[arg(long, default_value = "")]
    launch: String,
    /// Copies the folder's logs here if a promise is violated.
    #[arg(long)]
    keep: Option<PathBuf>,
}

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == replica::COMMAND) {
        words.remove(1);
        return replica::main(words).unwrap_or_else(|error| failed(&error));
    }
    // A replica starts this program to keep a command in.
    if words.get(1).is_some_and(|word| word == sandbox::HELPER_ARGUMENT) {
        return sandbox::helper_main();
    }
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    report::progress(&format!("could not go on: {error:#}"));
    ExitCode::from(2)
}

#[tokio::main]
async fn run(options: &Options) -> anyhow::Result<bool> {
    suite::run(options).await
}
