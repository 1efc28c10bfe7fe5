//! A replica: the service as it is, with two tools more, whose effects are written down elsewhere.

mod settings;
mod tool;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use agent_runtime::app::Extensions;
use agent_runtime::cli;
use net::http_client::client_builder;

pub(crate) use self::settings::{AGENT, APPROVER, Settings, write, write_worker};
use self::tool::EffectTool;

/// The word that makes this program a replica.
pub(crate) const COMMAND: &str = "replica";
/// The tool whose calls may be repeated.
pub(crate) const MARK: &str = "mark";
/// The tool whose calls may not be repeated.
pub(crate) const CHARGE: &str = "charge";

/// The tool that the caller executes.
pub(crate) const DECIDE: &str = "decide";

/// The tool of the service that runs commands.
pub(crate) const SHELL: &str = "shell";
/// The tool of the service that writes files.
pub(crate) const WRITE_FILE: &str = "write_file";

/// The text before the key of a call in the results of tools.
pub(crate) const DONE: &str = "done: ";

/// Returns the process that each command leaves behind. It would last longer than the suite, and
/// its name belongs to this suite alone.
pub(crate) fn lasting_process() -> String {
    format!("sleep 3600.{}", std::process::id())
}

/// Runs a command of the service; the word after the program's name is the ledger's address.
pub(crate) fn main(mut words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let ledger = words.remove(1).to_string_lossy().into_owned();
    let http = client_builder()?.build()?;
    let tools = [(MARK, true), (CHARGE, false)];
    let tools = tools.map(|(name, idempotent)| {
        let tool = EffectTool::new(name, idempotent, &ledger, http.clone());
        Arc::new(tool) as _
    });
    Ok(cli::main_with(
        words,
        Extensions {
            tools: tools.into(),
            ..Extensions::default()
        },
    ))
}
