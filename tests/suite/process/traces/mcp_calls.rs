//! Calls of agents over `/mcp`: their context is in the message.

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use reqwest::Method;
use serde_json::{Value, json};

use super::{CALLERS_SPAN, Collector, TRACE_ID, attribute, hex};
use crate::process::binary::Home;
use crate::process::service::{Service, read};
use crate::support::mock_model::{MockModel, Reply, last_user_text};

/// Calls a tool with the context of the caller, and returns the response.
async fn call(service: &Service, tool: &str, input: &str) -> Value {
    let request = service
        .request(Method::POST, "/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool);
    let body = json!({
        "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {
            "name": tool, "arguments": {"input": input},
            "_meta": {
                "traceparent": format!("00-{TRACE_ID}-{CALLERS_SPAN}-01"),
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    read(request, Some(body)).await.1
}

fn links(span: &Span) -> Vec<(String, String)> {
    let links = span.links.iter();
    links.map(|link| (hex(&link.trace_id), hex(&link.span_id))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_over_mcp_is_below_its_caller_or_linked_to_it() {
    let mock = MockModel::start(|request| match last_user_text(request).as_str() {
        "fail" => Reply::Status(400, "{}".to_owned()),
        _ => Reply::text("done"),
    })
    .await;
    for is_trusted in [true, false] {
        let collector = Collector::start().await;
        let home = Home::with_file()
            .with_mock(&mock)
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address);
        let trust = format!("traces.trust_traceparent={is_trusted}");
        let service = Service::start_with(&home, &["--set", &trust]).await;
        let response = call(&service, "echo", "work").await;
        assert_eq!(response["result"]["isError"], false, "{response:#}");
        collector.until("tools/call echo").await;
        collector.until("POST /mcp").await;
        let spans = collector.until("invoke_agent echo").await;

        let (request, called) = (&spans["POST /mcp"], &spans["tools/call echo"]);
        let (of_request, of_caller) = (
            (hex(&request.trace_id), hex(&request.span_id)),
            (TRACE_ID.to_owned(), CALLERS_SPAN.to_owned()),
        );
        let (parent, linked) = if is_trusted {
            (of_caller, of_request)
        } else {
            (of_request, of_caller)
        };
        assert_eq!((hex(&called.trace_id), hex(&called.parent_span_id)), parent);
        assert_eq!(links(called), [linked]);
        assert_eq!(called.kind(), SpanKind::Server);
        let agent = &spans["invoke_agent echo"];
        assert_eq!(
            (&agent.trace_id, &agent.parent_span_id),
            (&called.trace_id, &called.span_id)
        );
        for (name, expected) in [
            ("gen_ai.operation.name", json!("execute_tool")),
            ("gen_ai.tool.name", json!("echo")),
            ("mcp.method.name", json!("tools/call")),
            ("mcp.protocol.version", json!("2026-07-28")),
            ("jsonrpc.request.id", json!("7")),
            ("error.type", Value::Null),
        ] {
            assert_eq!(attribute(called, name), expected, "{name}");
        }

        // A tool that does not exist has no span, since callers could choose any name.
        let unknown = call(&service, "nothing", "work").await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown:#}");
        let failed = call(&service, "echo", "fail").await;
        assert_eq!(failed["result"]["isError"], true, "{failed:#}");
        service.stop().await;
        let calls: Vec<_> = collector.all();
        let calls: Vec<_> = calls
            .iter()
            .filter(|span| span.name.starts_with("tools/call"))
            .collect();
        let errors: Vec<_> = calls.iter().map(|span| attribute(span, "error.type")).collect();
        assert_eq!(errors, [Value::Null, json!("tool_error")]);
    }
}
