//! The service as a reader starts it: the built binary in an empty folder, and a shell beside it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use tempfile::TempDir;
use test_support::languages::openai_clients_of_python;
use test_support::raw_server::{RawReply, RawRequest, RawServer};
use values::json::Value;

use crate::support::mock_model::{MockModel, Reply, last_user_text};

/// When set, what a test needs must be there.
const REQUIRE: &str = "AGENT_RUNTIME_TEST_REQUIRE_SERVERS";
/// The address of the service in the documents.
const SHOWN: &str = "127.0.0.1:8080";
/// The API that tools and commands of the documents use, and its secret.
const API: &str = "https://weather.example.org";
/// Its host, as the network of commands names it.
const API_HOST: &str = "\"weather.example.org\"";
const WEATHER_TOKEN: &str = "weather-token";
/// The last line of the banner holds this.
const LAST_LINE: &str = "curl ";

/// A running service and its folder. Real providers are played by a mock.
#[derive(Debug)]
pub(super) struct Service {
    folder: TempDir,
    process: Child,
    address: String,
    environment: Vec<(String, String)>,
    /// The text that it printed at its start, with the address of the documents.
    pub(super) banner: String,
    _mock: MockModel,
    api: RawServer,
}

impl Service {
    /// Starts the binary on a free port, with these files in its folder. Returns `None` on a
    /// machine without curl, unless nothing may be left out. Also plays the API of the files.
    pub(super) async fn start(files: &[(String, String)]) -> Option<Self> {
        if !has_program("curl") {
            return None;
        }
        let mock = MockModel::start(played).await;
        let folder = tempfile::tempdir().unwrap();
        let api = RawServer::start(played_api).await;
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, reachable(text, &api)).unwrap();
        }
        let binary = Path::new(env!("CARGO_BIN_EXE_agent-runtime"));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", binary.parent().unwrap().display());
        let environment = [
            ("PATH", path),
            ("OPENAI_API_KEY", "sk-test".to_owned()),
            ("ANTHROPIC_API_KEY", "sk-test".to_owned()),
            ("WEATHER_TOKEN", WEATHER_TOKEN.to_owned()),
            ("GITHUB_SECRET", "github-secret".to_owned()),
            ("OPENAI_BASE_URL", mock.base_url()),
            ("AGENT_RUNTIME__PROVIDERS__ANTHROPIC__BASE_URL", mock.base_url()),
            ("AGENT_RUNTIME__PROVIDERS__OLLAMA__BASE_URL", mock.base_url()),
        ];
        let environment: Vec<_> = environment.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let mut process = Command::new(binary)
            .args(["--listen", "127.0.0.1:0"])
            .current_dir(folder.path())
            .env_clear()
            .envs(environment.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.path().join("service.log")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut banner = String::new();
        while !banner.contains(LAST_LINE) {
            let line = lines.next().expect("the service ended before its banner did").unwrap();
            banner.push_str(&line);
            banner.push('\n');
        }
        let address = banner
            .split("http://")
            .nth(1)
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap();
        let address = address.to_owned();
        Some(Self {
            folder,
            process,
            banner: banner.replace(&address, SHOWN),
            address,
            environment,
            _mock: mock,
            api,
        })
    }

    /// Runs commands as a reader would, and returns what the terminal shows. Variables they set
    /// are there for later ones.
    pub(super) fn run(&self, commands: &str) -> Result<String, String> {
        let lines: Vec<String> = commands
            .lines()
            .filter_map(assigned)
            .map(|name| format!("printf '%s=%s\\n' {name} \"${name}\" >> variables"))
            .collect();
        let script = format!(
            "touch variables; . ./variables; exec 2>&1; set -e\n{}\n{}",
            commands.replace(SHOWN, &self.address).replace(API, &self.api.url("")),
            lines.join("\n")
        );
        self.output(Command::new("sh").args(["-c", &script]))
    }

    /// Runs a program in Python with the clients of OpenAI's API, and returns its output; `None` if
    /// they are neither there nor required.
    pub(super) fn run_python(&self, program: &str) -> Option<Result<String, String>> {
        let python = openai_clients_of_python()?;
        let program = program.replace(SHOWN, &self.address);
        Some(self.output(Command::new(python).args(["-c", &program])))
    }

    fn output(&self, command: &mut Command) -> Result<String, String> {
        let done = command
            .current_dir(self.folder.path())
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let shown = String::from_utf8(done.stdout).unwrap().replace(&self.address, SHOWN);
        if done.status.success() {
            Ok(shown)
        } else {
            let errors = String::from_utf8_lossy(&done.stderr);
            Err(format!("the commands failed with {}:\n{shown}{errors}", done.status))
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended already; there is nothing to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns whether a program that commands of the documents use is there. Panics if it is missing
/// and nothing may be left out.
pub(super) fn has_program(name: &str) -> bool {
    let started = Command::new(name).arg("--version").stdout(Stdio::null()).status();
    if started.is_err() {
        assert!(
            std::env::var_os(REQUIRE).is_none(),
            "{REQUIRE} is set and there is no {name}"
        );
        eprintln!("SKIPPED: the documents' commands need {name}");
    }
    started.is_ok()
}

/// Returns a file with the address of the API that is played.
fn reachable(text: &str, api: &RawServer) -> String {
    if text.contains("[sandbox.network]") {
        let local = "[sandbox.network]\nallow_networks = [\"127.0.0.1\"]\nports = []";
        return text
            .replace("[sandbox.network]", local)
            .replace(API_HOST, "\"127.0.0.1\"");
    }
    if !text.contains(API) {
        return text.to_owned();
    }
    let local = "allow_http = true\nallow_networks = [\"127.0.0.1\"]\n";
    format!("{local}{}", text.replace(API, &api.url("")))
}

/// Plays the API of the documents.
fn played_api(request: &RawRequest) -> RawReply {
    let token = format!("Bearer {WEATHER_TOKEN}");
    if request.line() == "POST /mcp" && request.header("authorization") == Some(token.as_str()) {
        return played_server(&serde_json::from_str(&request.body).unwrap());
    }
    if request.line() == "GET /v1/cities" {
        return RawReply::new(200, &[("content-type", "application/json")], r#"["Basel","Bern"]"#);
    }
    if request.line() != "GET /v1/cities/Bern" || request.header("authorization") != Some(token.as_str()) {
        return RawReply::new(404, &[], "");
    }
    let weather = json!({"city": "Bern", "current": {"temperature": 21.5, "sky": "sunny"}});
    RawReply::new(200, &[("content-type", "application/json")], weather.to_string())
}

/// Plays an MCP server with one tool.
fn played_server(request: &Value) -> RawReply {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let result = match request["method"].as_str().unwrap() {
        "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
        "tools/list" => json!({"tools": [{"name": "forecast", "inputSchema": schema}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "21.5 degrees, sunny"}]}),
        _ => return RawReply::new(202, &[], ""),
    };
    let mut result = result;
    for (key, value) in [
        ("resultType", json!("complete")),
        ("ttlMs", json!(60_000)),
        ("cacheScope", json!("public")),
    ] {
        result[key] = value;
    }
    let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    RawReply::new(200, &[("content-type", "application/json")], response.to_string())
}

/// Plays a model: it repeats its input, after it has delegated a question if it can.
fn played(request: &Value) -> Reply {
    if request["response_format"]["type"].is_string() {
        return Reply::text(r#"{"city": "Bern"}"#);
    }
    let tools = request["tools"].as_array().into_iter().flatten();
    let tools: Vec<_> = tools.map(|tool| &tool["function"]["name"]).collect();
    let can_ask = tools.iter().any(|name| **name == "research");
    let has_asked = request["messages"].as_array().unwrap().last().unwrap()["role"] == "tool";
    if can_ask && !has_asked {
        let task = last_user_text(request);
        return Reply::call("call-1", "research", &json!({"task": task}));
    }
    Reply::text(&format!("echo: {}", last_user_text(request)))
}

/// Returns the variable that a line sets.
fn assigned(line: &str) -> Option<&str> {
    let (name, _) = line.split_once('=')?;
    let is_name = !name.is_empty() && name.bytes().all(|c| c.is_ascii_uppercase() || c == b'_');
    is_name.then_some(name)
}
