//! What the service passes on of a trace: to tools, to MCP servers, to webhooks, to commands and to
//! providers.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use test_support::raw_server::{RawReply, RawRequest, RawServer};
use test_support::wait::until;

use super::{CALLERS_SPAN, Collector, TRACE_ID, hex, traceparent_of};
use crate::mcp::raw::{begin, response};
use crate::process::binary::Home;
use crate::process::sandbox::results;
use crate::process::service::{Service, read};
use crate::support::mock_model::{MockModel, Reply, last_user_text, listed_calls, new_results};

/// What others than the service see: HTTP tools, an MCP server and receivers of webhooks.
async fn outside() -> RawServer {
    RawServer::start(|request| match request.line() {
        "POST /mcp" => match serde_json::from_str::<Value>(&request.body) {
            Ok(message) if message["method"] == "tools/call" => {
                response(&message["id"], json!({"content": [{"type": "text", "text": "called"}]}))
            }
            Ok(message) => begin(&message),
            Err(_) => RawReply::new(405, &[], ""),
        },
        "GET /mcp" => RawReply::new(405, &[], ""),
        line if line.starts_with("GET") => RawReply::text("looked"),
        _ => RawReply::new(204, &[], ""),
    })
    .await
}

/// A home with the agent `caller`, which has tools of all kinds and two webhooks, and the agent
/// `private`, whose provider gets no context.
fn home(mock: &MockModel, outside: &RawServer, collector: &Collector) -> Home {
    let home = Home::with_file().variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address);
    let commands = home.path().join("commands");
    let home = home.variable("AGENT_RUNTIME__SANDBOX__DIRECTORY", commands.to_str().unwrap());
    let provider = |name: &str| {
        format!(
            "[providers.{name}]\nkind = 'openai_chat'\nbase_url = '{}'\n",
            mock.base_url()
        )
    };
    let (traced, plain) = (provider("traced"), provider("plain"));
    let webhooks = "[webhooks]\nallow_http = true\nallow_private_addresses = true\n";
    home.write(
        "agent-runtime.toml",
        &format!("[models]\nmax_retries = 0\n{webhooks}{plain}{traced}trace_context = true\n"),
    );
    let reachable = "allow_http = true\nallow_networks = ['127.0.0.1']\n";
    for (name, more) in [("open", "trace_context = true\n"), ("closed", "")] {
        let url = outside.url(&format!("/{name}"));
        let tool = format!("description = 'A tool.'\nurl = '{url}'\n{reachable}{more}");
        home.write(&format!("config/tools/{name}.toml"), &tool);
    }
    let server = format!("url = '{}'\n{reachable}", outside.url("/mcp"));
    home.write("config/mcp/box.toml", &server);
    let hook = |path: &str, more: &str| {
        let url = outside.url(path);
        format!("[[hooks]]\nname = 'webhook'\n[hooks.config]\nurl = '{url}'\npoints = ['before_tool_use']\n{more}")
    };
    let agent = format!(
        "name = 'caller'\nmodel = 'traced/m'\ntools = ['shell', 'open', 'closed']\nmcp = ['box']\n{}{}\
         [[subagents]]\nagent = 'private'\n",
        hook("/hook", ""),
        hook("/closed-hook", "trace_context = false\n"),
    );
    home.write("config/agents/caller.toml", &agent);
    let private = "name = 'private'\nmodel = 'plain/p'\ntools = ['open']\n";
    home.write("config/agents/private.toml", private);
    home
}

/// Makes the calls that the input lists, and then is done.
async fn model() -> MockModel {
    MockModel::start(|request| {
        let calls = listed_calls(&last_user_text(request)).filter(|_| new_results(request).is_empty());
        calls.unwrap_or_else(|| Reply::text("done"))
    })
    .await
}

async fn run(service: &Service, webhook: &Value) -> Value {
    let calls = json!([
        ["c1", "shell", {"command": "echo \"[$TRACEPARENT]\""}],
        ["c2", "open", {}],
        ["c3", "closed", {}],
        ["c4", "box_t", {}],
        ["c5", "private", {"task": json!([["d1", "open", {}]]).to_string()}],
    ]);
    let request = service
        .request(Method::POST, "/v1/runs")
        .header("traceparent", format!("00-{TRACE_ID}-{CALLERS_SPAN}-01"));
    let body = json!({"agent": "caller", "input": calls.to_string(), "webhook": webhook});
    let (_, run) = read(request, Some(body)).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    run
}

/// Returns the context of each request with this line, in their order.
fn contexts(outside: &RawServer, line: &str) -> Vec<Option<String>> {
    let requests = outside.requests();
    let requests = requests.iter().filter(|request| request.line() == line);
    let context = |request: &RawRequest| request.header("traceparent").map(str::to_owned);
    requests.map(context).collect()
}

/// Returns the methods of the messages to the MCP server, with their contexts.
fn messages(outside: &RawServer) -> Vec<(String, Value)> {
    let requests = outside.requests();
    let requests = requests.iter().filter(|request| request.line() == "POST /mcp");
    let read = |request: &RawRequest| {
        let message: Value = serde_json::from_str(&request.body).unwrap();
        let method = message["method"].as_str().unwrap().to_owned();
        (method, message["params"]["_meta"]["traceparent"].clone())
    };
    requests.map(read).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_calls_gets_the_span_of_the_call() {
    let (collector, outside, mock) = (Collector::start().await, outside().await, model().await);
    let home = home(&mock, &outside, &collector);
    let service = Service::start_with(&home, &["--set", "traces.trust_traceparent=true"]).await;
    let ended = run(&service, &json!({"url": outside.url("/end")})).await;
    until("no webhook comes", async || !contexts(&outside, "POST /end").is_empty()).await;
    let spans = collector.until("invoke_agent caller").await;
    let of = |name: &str| traceparent_of(&spans[name]);
    let agent = Some(of("invoke_agent caller"));

    let printed = &results(&service, &ended).await[0];
    assert_eq!(printed.trim(), format!("[{}]", of("execute_tool shell")));
    let tools = collector.all();
    let tools = tools.iter().filter(|span| span.name == "execute_tool open");
    let tools: BTreeSet<_> = tools.map(|span| Some(traceparent_of(span))).collect();
    assert_eq!(tools.len(), 2, "that of the agent and that of its subagent");
    let sent: BTreeSet<_> = contexts(&outside, "GET /open").into_iter().collect();
    assert_eq!(sent, tools);
    assert_eq!(contexts(&outside, "GET /closed"), [None]);

    let messages = messages(&outside);
    let (calls, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(|(method, _)| method == "tools/call");
    assert_eq!(calls, [("tools/call".to_owned(), json!(of("execute_tool box_t")))]);
    assert!(others.iter().any(|(method, _)| method == "tools/list"), "{others:?}");
    assert!(others.iter().all(|(_, context)| context.is_null()), "{others:?}");

    let hooks = contexts(&outside, "POST /hook");
    assert_eq!(
        hooks.iter().filter(|context| **context == agent).count(),
        5,
        "{hooks:?}"
    );
    // The hooks of an agent apply to its subagents, too.
    assert_eq!(hooks.len(), 6);
    assert!(hooks.contains(&Some(of("invoke_agent private"))), "{hooks:?}");
    assert_eq!(contexts(&outside, "POST /closed-hook"), vec![None; 6]);
    assert_eq!(contexts(&outside, "POST /end"), [agent]);

    let chats = collector.all();
    let chats = chats.iter().filter(|span| span.name == "chat m");
    let chats: BTreeSet<_> = chats.map(traceparent_of).collect();
    assert_eq!(chats.len(), 2);
    let asked = mock.headers("traceparent");
    assert_eq!(asked.len(), 4);
    let asked: Vec<_> = asked.into_iter().flatten().collect();
    assert_eq!(asked.len(), 2, "the other provider gets none");
    assert_eq!(asked.into_iter().collect::<BTreeSet<_>>(), chats);
    for span in collector.all() {
        assert_eq!(hex(&span.trace_id), TRACE_ID, "{}", span.name);
    }

    let closed = json!({"url": outside.url("/closed-end"), "trace_context": false});
    run(&service, &closed).await;
    until("no webhook comes", async || {
        !contexts(&outside, "POST /closed-end").is_empty()
    })
    .await;
    assert_eq!(contexts(&outside, "POST /closed-end"), [None]);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_not_recorded_passes_nothing_on() {
    let (collector, mock) = (Collector::start().await, model().await);
    for (variable, value) in [("OTEL_TRACES_SAMPLER", "always_off"), ("OTEL_SDK_DISABLED", "true")] {
        let outside = outside().await;
        let home = home(&mock, &outside, &collector).variable(variable, value);
        let service = Service::start_with(&home, &["--set", "traces.trust_traceparent=true"]).await;
        let ended = run(&service, &json!({"url": outside.url("/end")})).await;
        until("no webhook comes", async || !contexts(&outside, "POST /end").is_empty()).await;
        assert_eq!(results(&service, &ended).await[0].trim(), "[]");
        service.stop().await;
        for request in outside.requests() {
            assert_eq!(request.header("traceparent"), None, "{variable}: {}", request.line());
        }
        assert!(
            messages(&outside).iter().all(|(_, context)| context.is_null()),
            "{variable}"
        );
        assert!(mock.headers("traceparent").iter().all(Option::is_none), "{variable}");
        assert_eq!(collector.all().len(), 0, "{variable}");
    }
}
