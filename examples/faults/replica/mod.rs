//! A replica: the service as it is, with two tools more, whose effects are written down elsewhere.

mod settings;
mod tool;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use agent_runtime::app::Extensions;
use agent_runtime::cli;

pub(crate) use self::settings::{AGENT, Settings, write};
use self::tool::EffectTool;

/// The word that makes this program a replica.
pub(crate) const COMMAND: &str = "replica";
/// The tool whose calls may be repeated.
pub(crate) const MARK: &str = "mark";
/// The tool whose calls may not be repeated.
pub(crate) const CHARGE: &str = "charge";

/// The text before the key of a call in the results of tools.
pub(crate) const DONE: &str = "done: ";

/// Runs a command of the service; the word after the program's name is the ledger's address.
pub(crate) fn main(mut words: Vec<OsString>) -> ExitCode {
    let ledger = words.remove(1).to_string_lossy().into_owned();
    let tools = [(MARK, true), (CHARGE, false)];
    let tools = tools.map(|(name, idempotent)| Arc::new(EffectTool::new(name, idempotent, &ledger)) as _);
    cli::main_with(words, Extensions { tools: tools.into() })
}
