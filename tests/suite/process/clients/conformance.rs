//! The fixtures of the conformance suite, as far as agents can play them.

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, Response, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::process::binary::Home;
use crate::support::mock_model::{MockModel, Reply, tool_results};
use crate::support::test_app::plain_client;

/// The tools that agents play: they answer at once, report progress, fail, or ask once or twice.
const AGENTS: [&str; 10] = [
    "test_simple_text",
    "test_error_handling",
    "test_tool_with_progress",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multi_round",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_input_required_result_elicitation",
    "test_input_required_result_request_state",
    "test_mrtr_no_result_type",
];

/// Passes requests on to a service; it stops when it is dropped.
pub(super) struct Forwarder {
    pub(super) address: String,
    task: JoinHandle<()>,
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Makes a folder with the agents, and the model behind them.
pub(super) async fn home() -> (Home, MockModel) {
    let mock = MockModel::start(play).await;
    let home = Home::with_file().with_mock(&mock);
    for name in AGENTS {
        let tools = if name == "test_tool_with_progress" {
            "'calculator'"
        } else {
            ""
        };
        let client_tool = |name: &str, property: &str| {
            format!(
                "[[client_tools]]\nname = '{name}'\ndescription = 'Asks.'\n[client_tools.response_schema]\ntype = 'object'\n\
                 properties.{property}.type = 'string'\n"
            )
        };
        let definition = format!(
            "name = '{name}'\nmodel = 'mock/{name}'\ndescription = 'A fixture.'\ntools = [{tools}]\n{}{}",
            client_tool("ask_name", "name"),
            client_tool("ask_color", "color"),
        );
        home.write(&format!("config/agents/{name}.toml"), &definition);
    }
    (home, mock)
}

/// Plays the model of an agent, which has its name.
fn play(request: &Value) -> Reply {
    match (
        request["model"].as_str().unwrap_or_default(),
        tool_results(request).len(),
    ) {
        ("test_error_handling", _) => Reply::Status(400, r#"{"error": {"message": "no"}}"#.to_owned()),
        ("test_tool_with_progress", 0) => Reply::call("c1", "calculator", &json!({"expression": "1 + 1"})),
        ("test_input_required_result_multi_round", 1) => Reply::call("c2", "ask_color", &json!({})),
        (name, 0)
            if ["input_required", "mrtr", "elicitation"]
                .iter()
                .any(|asks| name.contains(asks)) =>
        {
            Reply::call("c1", "ask_name", &json!({}))
        }
        _ => Reply::text("This is a simple text response for testing."),
    }
}

/// Starts a forwarder. The tools of the suite have no arguments, and an agent has an input.
pub(super) async fn forward_to(service: &str) -> Forwarder {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let router = Router::new().fallback(forward).with_state(format!("http://{service}"));
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Forwarder { address, task }
}

async fn forward(State(service): State<String>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = with_input(to_bytes(body, 1 << 20).await.unwrap());
    let url = format!("{service}{}", parts.uri);
    let mut forwarded = plain_client().request(parts.method, url).body(body);
    let own: [HeaderName; 3] = [header::CONTENT_LENGTH, header::CONNECTION, header::TRANSFER_ENCODING];
    for (name, value) in parts.headers.iter().filter(|(name, _)| !own.contains(name)) {
        forwarded = forwarded.header(name, value);
    }
    let answer = forwarded.send().await.unwrap();
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers().iter().filter(|(name, _)| !own.contains(name)) {
        response = response.header(name, value);
    }
    let bytes = answer.bytes().await.unwrap();
    response.body(Body::from(bytes)).unwrap()
}

fn with_input(body: Bytes) -> Bytes {
    let Ok(mut message) = serde_json::from_slice::<Value>(&body) else {
        return body;
    };
    if message["method"] != "tools/call" {
        return body;
    }
    if let Some(arguments) = message["params"]["arguments"]
        .as_object_mut()
        .filter(|given| given.is_empty())
    {
        arguments.insert("input".to_owned(), json!("begin"));
    }
    message.to_string().into()
}
