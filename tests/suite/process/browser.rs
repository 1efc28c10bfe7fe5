//! Checks in a browser. They start the binary themselves, since some of them kill it.

use std::path::Path;
use std::process::Command;

use parking_lot::Mutex;
use test_support::languages::BrowserTools;

use super::clients::succeed;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Held while a browser is at work: several at once leave little to the tests beside them.
static BROWSER: Mutex<()> = Mutex::new(());

/// Runs a file with checks. `modules` is the variable that names their libraries.
pub(super) fn run_checks(tools: &BrowserTools, modules: &str, file: &str) {
    let _alone = BROWSER.lock();
    let mut command = Command::new(&tools.node);
    command.arg("--test").arg(Path::new(ROOT).join(file));
    command.env("AGENT_RUNTIME_TEST_BINARY", env!("CARGO_BIN_EXE_agent-runtime"));
    command.env(modules, &tools.modules);
    succeed(command.env("AGENT_RUNTIME_TEST_CHROMIUM", &tools.chromium));
}
