//! Interpreters of other languages with the libraries by which tests check the service from
//! outside. `scripts/test` has them ready.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::databases::variable;

/// A Python that has the libraries.
const PYTHON: &str = "AGENT_RUNTIME_TEST_PYTHON";
/// The libraries of Node.js.
const NODE_MODULES: &str = "AGENT_RUNTIME_TEST_NODE_MODULES";
/// When set, a missing library is a failure.
const REQUIRE: &str = "AGENT_RUNTIME_TEST_REQUIRE_SERVERS";

/// Returns the Python; `None` when it is not there and not required.
pub(crate) fn python() -> Option<String> {
    let python = variable(PYTHON);
    if python.is_none() {
        assert!(variable(REQUIRE).is_none(), "{REQUIRE} is set and {PYTHON} is not");
        eprintln!("SKIPPED: {PYTHON} names no Python with the libraries of tests/python.txt");
    }
    python
}

/// Returns the libraries of Node.js; `None` on a machine without npm, or when they are not there
/// and not required.
pub(crate) fn node_modules() -> Option<PathBuf> {
    let modules = variable(NODE_MODULES);
    if modules.is_none() {
        let npm = Command::new("npm").arg("--version").stdout(Stdio::null()).status();
        let is_required = npm.is_ok() && variable(REQUIRE).is_some();
        assert!(!is_required, "{REQUIRE} is set and {NODE_MODULES} is not");
        eprintln!("SKIPPED: {NODE_MODULES} names no folder with the libraries of tests/node");
    }
    modules.map(PathBuf::from)
}
