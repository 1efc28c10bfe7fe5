//! Interpreters of other languages with the libraries by which tests check the service from
//! outside. `scripts/test` has them ready.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::environment::{REQUIRE, variable};

/// A Python that has the libraries.
const PYTHON: &str = "AGENT_RUNTIME_TEST_PYTHON";
/// The libraries of Node.js.
const NODE_MODULES: &str = "AGENT_RUNTIME_TEST_NODE_MODULES";
/// Clients of the Model Context Protocol, and a newer Node.js.
const MCP_MODULES: &str = "AGENT_RUNTIME_TEST_MCP_MODULES";
/// MCP servers by others: an environment of Python, and libraries of Node.js.
const MCP_SERVERS_PYTHON: &str = "AGENT_RUNTIME_TEST_MCP_SERVERS_PYTHON";
const MCP_SERVERS_NODE: &str = "AGENT_RUNTIME_TEST_MCP_SERVERS_NODE";
/// Clients of OpenAI's API: a Python that has them, and libraries of Node.js.
const OPENAI_CLIENTS_PYTHON: &str = "AGENT_RUNTIME_TEST_OPENAI_CLIENTS_PYTHON";
const OPENAI_CLIENTS_NODE: &str = "AGENT_RUNTIME_TEST_OPENAI_CLIENTS_NODE";
/// The identity provider: libraries of Node.js.
const OIDC_NODE: &str = "AGENT_RUNTIME_TEST_OIDC_NODE";
/// Checks of the console: libraries of Node.js, and a browser.
const CONSOLE_NODE: &str = "AGENT_RUNTIME_TEST_CONSOLE_NODE";
const CHROMIUM: &str = "AGENT_RUNTIME_TEST_CHROMIUM";
/// Checks of pages of others: libraries of Node.js.
const FACES_NODE: &str = "AGENT_RUNTIME_TEST_FACES_NODE";

/// What checks in a browser need.
#[derive(Debug)]
pub struct BrowserTools {
    /// The program that runs them.
    pub node: PathBuf,
    /// Their libraries.
    pub modules: PathBuf,
    /// The browser.
    pub chromium: PathBuf,
}

/// Returns whether there is any Python for the scripts that need no libraries; `false` only if none
/// is required.
pub fn has_python() -> bool {
    let is_there = Command::new("python3").arg("--version").output().is_ok();
    if !is_there {
        assert!(variable(REQUIRE).is_none(), "{REQUIRE} is set and there is no python3");
        eprintln!("SKIPPED: the script needs python3");
    }
    is_there
}

/// Returns the Python; `None` when it is not there and not required.
pub fn python() -> Option<String> {
    python_with(PYTHON, "tests/python.txt")
}

/// Returns the program of a collector of OpenTelemetry, which is among the libraries of Python;
/// `None` if it is neither there nor required.
pub fn collector() -> Option<PathBuf> {
    let find = "import importlib.util as u; print(u.find_spec('rotel').submodule_search_locations[0])";
    let found = Command::new(python()?).args(["-c", find]).output().unwrap();
    let folder = String::from_utf8(found.stdout).unwrap();
    Some(PathBuf::from(folder.trim()).join("rotel-agent"))
}

/// Returns the folder that Node.js and npm are installed in; `None` on a machine without them.
pub fn node_prefix() -> Option<PathBuf> {
    let asked = Command::new("npm")
        .args(["config", "get", "prefix", "--location=global"])
        .output();
    let Ok(answer) = asked else {
        eprintln!("SKIPPED: the test needs npm");
        return None;
    };
    let prefix = String::from_utf8(answer.stdout).unwrap();
    Some(PathBuf::from(prefix.trim()).canonicalize().unwrap())
}

/// Returns the libraries of Node.js; `None` on a machine without npm, or when they are not there
/// and not required.
pub fn node_modules() -> Option<PathBuf> {
    modules(NODE_MODULES, "tests/node")
}

/// Returns the clients of the Model Context Protocol in the same way, and the program that runs
/// them.
pub fn mcp_clients() -> Option<(PathBuf, PathBuf)> {
    let modules = modules(MCP_MODULES, "tests/node-mcp")?;
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let node = modules.join(format!("node-linux-{architecture}/bin/node"));
    Some((node, modules))
}

/// Returns the environment of Python with MCP servers; `None` if it is neither there nor required.
pub fn mcp_servers_of_python() -> Option<PathBuf> {
    python_with(MCP_SERVERS_PYTHON, "tests/mcp-servers/python.txt").map(PathBuf::from)
}

/// Returns the libraries of Node.js with MCP servers, and the program that runs them.
pub fn mcp_servers_of_node() -> Option<(PathBuf, PathBuf)> {
    let (node, _) = mcp_clients()?;
    let modules = modules(MCP_SERVERS_NODE, "tests/mcp-servers")?;
    Some((node, modules))
}

/// Returns a Python that has clients of OpenAI's API; `None` if it is neither there nor required.
pub fn openai_clients_of_python() -> Option<String> {
    python_with(OPENAI_CLIENTS_PYTHON, "tests/openai-clients/python.txt")
}

/// Returns the libraries of Node.js with clients of OpenAI's API, and the program that runs them.
pub fn openai_clients_of_node() -> Option<(PathBuf, PathBuf)> {
    let (node, _) = mcp_clients()?;
    let modules = modules(OPENAI_CLIENTS_NODE, "tests/openai-clients")?;
    Some((node, modules))
}

/// Returns the libraries of Node.js with an identity provider, and the program that runs them.
pub fn identity_provider() -> Option<(PathBuf, PathBuf)> {
    let (node, _) = mcp_clients()?;
    let modules = modules(OIDC_NODE, "tests/oidc")?;
    Some((node, modules))
}

/// Returns what the checks of the console need; `None` on a machine without npm, or when it is
/// neither there nor required.
pub fn console_tools() -> Option<BrowserTools> {
    browser_tools(CONSOLE_NODE, "tests/console")
}

/// Returns what the checks of pages of others need, in the same way.
pub fn face_tools() -> Option<BrowserTools> {
    browser_tools(FACES_NODE, "tests/faces")
}

fn browser_tools(name: &str, libraries: &str) -> Option<BrowserTools> {
    let (node, _) = mcp_clients()?;
    let modules = modules(name, libraries)?;
    let Some(chromium) = variable(CHROMIUM) else {
        assert!(variable(REQUIRE).is_none(), "{REQUIRE} is set and {CHROMIUM} is not");
        eprintln!("SKIPPED: {CHROMIUM} names no browser");
        return None;
    };
    Some(BrowserTools {
        node,
        modules,
        chromium: PathBuf::from(chromium),
    })
}

fn python_with(name: &str, libraries: &str) -> Option<String> {
    let python = variable(name);
    if python.is_none() {
        assert!(variable(REQUIRE).is_none(), "{REQUIRE} is set and {name} is not");
        eprintln!("SKIPPED: {name} names no Python with the libraries of {libraries}");
    }
    python
}

fn modules(name: &str, libraries: &str) -> Option<PathBuf> {
    let modules = variable(name);
    if modules.is_none() {
        let npm = Command::new("npm").arg("--version").stdout(Stdio::null()).status();
        let is_required = npm.is_ok() && variable(REQUIRE).is_some();
        assert!(!is_required, "{REQUIRE} is set and {name} is not");
        eprintln!("SKIPPED: {name} names no folder with the libraries of {libraries}");
    }
    modules.map(PathBuf::from)
}
