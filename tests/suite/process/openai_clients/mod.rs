//! Unmodified clients of OpenAI's API against the binary.
//!
//! Every client plays the same scenarios, each with a script of its own. So the tests expect the
//! same of all: the requests that reach the model, and the sessions that are stored.

mod background;
mod compliance;
mod features;
mod retries;
mod scenarios;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use test_support::gate::Gate;
use test_support::languages::{openai_clients_of_node, openai_clients_of_python};

use super::binary::Home;
use super::clients::succeed;
use super::service::Service;
use crate::support::mock_model::{MockModel, Reply, content_text, last_user_text, new_results};

/// Where the scripts are.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/process/openai_clients");
/// The agents that the scripts name as models.
const AGENTS: [(&str, &str); 3] = [
    ("plain", "system_prompt = 'You help.'\ntools = []\n"),
    ("toolbox", "system_prompt = 'You compute.'\ntools = ['calculator']\n"),
    (
        "careful",
        "system_prompt = 'You ask.'\ntools = ['calculator']\n\
         [[approvals]]\ntools = ['calculator']\napproval = 'always'\n",
    ),
];

/// Starts the model behind the agents. It waits at the gate before the end of its response to
/// `wait`.
async fn model(gate: &Arc<Gate>) -> MockModel {
    let gate = Arc::clone(gate);
    MockModel::start(move |request| respond(request, &gate)).await
}

fn respond(request: &Value, gate: &Arc<Gate>) -> Reply {
    if request["response_format"]["type"] == "json_schema" {
        return Reply::text(r#"{"city": "Bern", "degrees": 21}"#);
    }
    let results = new_results(request);
    match (last_user_text(request).as_str(), results.first().map(String::as_str)) {
        ("compute", None) => Reply::call("c1", "calculator", &json!({"expression": "6*7"})),
        ("compute", Some("42")) => Reply::text("It is 42."),
        ("compute", Some(_)) => Reply::text("Nothing is computed."),
        ("weather", None) => Reply::call("c1", "weather", &json!({"city": "Bern"})),
        ("weather", Some(result)) => Reply::text(&format!("The tool said: {result}")),
        ("wait", _) => Reply::HeldAtEnd(Arc::clone(gate), vec!["almost ".to_owned(), "done".to_owned()]),
        ("fail", _) => Reply::Status(400, r#"{"error": {"message": "no"}}"#.to_owned()),
        (text, _) => Reply::Text(vec!["echo: ".to_owned(), text.to_owned()]),
    }
}

/// Adds the agents to a folder.
fn with_agents(home: Home, mock: &MockModel) -> Home {
    let home = home.with_mock(mock);
    for (name, definition) in AGENTS {
        let text = format!("name = '{name}'\nmodel = 'mock/m'\n{definition}");
        home.write(&format!("config/agents/{name}.toml"), &text);
    }
    home
}

/// The index of the parent of a session, and the messages of the session as [`line`] writes them.
type Stored = (Option<usize>, String);

/// A service with the agents, and the model behind them.
#[derive(Debug)]
struct World {
    gate: Arc<Gate>,
    mock: MockModel,
    home: Home,
    service: Service,
}

impl World {
    async fn start() -> Self {
        let gate = Gate::new();
        let mock = model(&gate).await;
        let home = with_agents(Home::with_file(), &mock);
        let service = Service::start(&home).await;
        Self {
            gate,
            mock,
            home,
            service,
        }
    }

    /// Plays a scenario. Returns what the script printed; `None` if its client is neither there nor
    /// required.
    fn play(&self, script: &str, scenario: &str) -> Option<String> {
        play(&self.home, script, &[scenario, &url(&self.service)])
    }

    /// Returns the messages of each request to the model, as [`line`] writes them.
    fn asked(&self) -> Vec<String> {
        let requests = self.mock.requests();
        requests.iter().map(|request| line(&request["messages"])).collect()
    }
}

/// Returns the address for a client.
fn url(service: &Service) -> String {
    format!("http://{}/v1", service.address)
}

/// Runs a script with arguments, which must succeed, and returns what it printed; `None` if its
/// client is neither there nor required.
fn play(home: &Home, script: &str, arguments: &[&str]) -> Option<String> {
    let mut command = if matches!(script.rsplit_once('.'), Some((_, "py"))) {
        let mut command = Command::new(openai_clients_of_python()?);
        command
            .arg(format!("{FOLDER}/{script}"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // LiteLLM would download its list of models.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        command
    } else {
        let (node, modules) = openai_clients_of_node()?;
        // Modules are found beside the script only.
        let folder = home.path().join("clients");
        if fs::create_dir(&folder).is_ok() {
            symlink(&modules, folder.join("node_modules")).unwrap();
        }
        for name in ["common.mjs", script] {
            fs::copy(format!("{FOLDER}/{name}"), folder.join(name)).unwrap();
        }
        let mut command = Command::new(node);
        command.arg(folder.join(script));
        command
    };
    Some(succeed(command.args(arguments).env("NO_PROXY", "127.0.0.1")))
}

/// Returns the stored sessions, the oldest one first.
async fn sessions(service: &Service) -> Vec<Stored> {
    let page = service.get("/v1/sessions?limit=100").await;
    let heads: Vec<&Value> = page["data"].as_array().unwrap().iter().rev().collect();
    let mut found = Vec::new();
    for head in &heads {
        let id = head["session_id"].as_str().unwrap();
        let session = service.get(&format!("/v1/sessions/{id}")).await;
        let parent = heads
            .iter()
            .position(|other| other["session_id"] == session["parent_session_id"]);
        found.push((parent, line(&session["message_history_state"]["messages"])));
    }
    found
}

/// Writes messages in one line. They have the form of this service, or that of Chat Completions.
fn line(messages: &Value) -> String {
    let messages = messages.as_array().unwrap().iter();
    messages.map(shown).collect::<Vec<_>>().join(" | ")
}

fn shown(message: &Value) -> String {
    let parts = message["content"].as_array().into_iter().flatten();
    let (mut text, mut calls) = (content_text(&message["content"]), Vec::new());
    for part in parts {
        match part["type"].as_str() {
            Some("tool_call") => calls.push(&part["name"]),
            Some("tool_result") => text.push_str(&content_text(&part["content"])),
            _ => (),
        }
    }
    let of_chat = message["tool_calls"].as_array().into_iter().flatten();
    calls.extend(of_chat.map(|call| &call["function"]["name"]));
    for name in calls {
        text.extend(["calls ", name.as_str().unwrap()]);
    }
    format!("{}: {text}", message["role"].as_str().unwrap())
}
