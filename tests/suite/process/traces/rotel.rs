//! A collector by others, which prints what it gets.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use test_support::languages::collector;
use test_support::ports::free_port;
use test_support::wait::{until, until_found};
use tokio::net::TcpStream;

use super::{CALLERS_SPAN, TRACE_ID, home, model, work};
use crate::process::binary::Home;
use crate::process::service::Service;

/// A running collector; dropping it kills it.
struct Rotel {
    process: Child,
    address: String,
    folder: TempDir,
}

/// What it prints of a span: its fields, and its attributes with their types.
type Printed = BTreeMap<String, String>;

impl Rotel {
    async fn start(program: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (address, grpc) = (
            format!("127.0.0.1:{}", free_port()),
            format!("127.0.0.1:{}", free_port()),
        );
        let process = Command::new(program)
            .args(["start", "--exporter", "blackhole", "--debug-log", "traces"])
            .args(["--debug-log-verbosity", "detailed", "--otlp-http-endpoint", &address])
            .args(["--otlp-grpc-endpoint", &grpc])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(File::create(folder.path().join("printed")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the collector does not listen", async || {
            TcpStream::connect(&address).await.is_ok()
        })
        .await;
        Self {
            process,
            address,
            folder,
        }
    }

    /// Returns the spans by their names.
    fn spans(&self) -> BTreeMap<String, Printed> {
        let text = fs::read_to_string(self.folder.path().join("printed")).unwrap();
        let spans = text.split("Span #").skip(1);
        spans.map(printed).map(|span| (span["Name"].clone(), span)).collect()
    }
}

impl Drop for Rotel {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads the lines `Name : chat m` and ` -> gen_ai.tool.name: Str(calculator)` of a span.
fn printed(text: &str) -> Printed {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim();
        match line.strip_prefix("-> ") {
            Some(attribute) => attribute.split_once(": "),
            None => line.split_once(':'),
        }
    });
    lines
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_by_others_reads_the_spans_of_a_run() {
    let Some(program) = collector() else { return };
    let (rotel, mock) = (Rotel::start(&program).await, model().await);
    let home = home(Home::with_file(), &mock, &format!("http://{}", rotel.address));
    let service = Service::start_with(&home, &["--set", "traces.trust_traceparent=true"]).await;
    let run = work(&service, "sync").await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let spans = until_found("the collector prints no end of the run", async || {
        let spans = rotel.spans();
        let is_whole = |span: &Printed| span.contains_key("agent_runtime.stop_reason");
        spans.get("invoke_agent lead").is_some_and(is_whole).then_some(spans)
    })
    .await;
    service.stop().await;

    for (name, span) in &spans {
        assert_eq!(span["Trace ID"], TRACE_ID, "{name}");
    }
    for (name, parent) in [
        ("invoke_agent lead", "POST /v1/runs"),
        ("chat m", "invoke_agent lead"),
        ("execute_tool calculator", "invoke_agent lead"),
        ("execute_tool helper", "invoke_agent lead"),
        ("invoke_agent helper", "execute_tool helper"),
    ] {
        // The last request to the model is the run's own.
        assert_eq!(spans[name]["Parent ID"], spans[parent]["ID"], "{name}");
    }
    let session = run["session_id"].as_str().unwrap();
    for (span, name, value) in [
        ("POST /v1/runs", "Parent ID", CALLERS_SPAN),
        ("POST /v1/runs", "Kind", "SPAN_KIND_SERVER"),
        ("POST /v1/runs", "http.response.status_code", "Int(200)"),
        ("invoke_agent lead", "Kind", "SPAN_KIND_INTERNAL"),
        ("invoke_agent lead", "gen_ai.agent.name", "Str(lead)"),
        ("invoke_agent lead", "agent_runtime.stop_reason", "Str(completed)"),
        (
            "invoke_agent lead",
            "gen_ai.conversation.id",
            &format!("Str({session})"),
        ),
        ("chat m", "Kind", "SPAN_KIND_CLIENT"),
        ("chat m", "gen_ai.provider.name", "Str(openai)"),
        ("chat m", "gen_ai.response.finish_reasons", "Slice(Str(stop))"),
        ("execute_tool calculator", "gen_ai.operation.name", "Str(execute_tool)"),
        ("execute_tool calculator", "gen_ai.tool.call.id", "Str(c1)"),
    ] {
        assert_eq!(spans[span][name], value, "{span}: {name}");
    }
}
