//! `/mcp` as clients by others use it: the command line of the official inspector, and the official
//! conformance suite.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use test_support::languages::mcp_clients;

use super::{FOLDER, conformance, succeed};
use crate::process::binary::Home;
use crate::process::service::Service;
use crate::support::mock_model::MockModel;

/// Starts a service with the agent `echo`.
async fn start() -> (Home, Service, MockModel) {
    let mock = MockModel::echoing().await;
    let home = Home::with_file().with_mock(&mock);
    let service = Service::start(&home).await;
    (home, service, mock)
}

/// Runs the inspector and returns what it printed.
fn inspect(clients: &(impl AsRef<Path>, impl AsRef<Path>), service: &Service, era: &str, arguments: &[&str]) -> Value {
    let (node, modules) = clients;
    let mut command = Command::new(node.as_ref());
    command
        .arg(modules.as_ref().join(".bin/mcp-inspector"))
        .args([
            "--cli",
            &format!("http://{}/mcp", service.address),
            "--transport",
            "http",
        ])
        .args(["--protocol-era", era, "--format", "json"])
        .args(arguments);
    let printed = succeed(&mut command);
    // Remarks about schemas follow the document.
    let mut documents = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
    let document = documents
        .next()
        .unwrap()
        .unwrap_or_else(|error| panic!("{error}: {printed}"));
    document["result"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_uses_agents_and_sessions_in_both_eras() {
    let Some(clients) = mcp_clients() else { return };
    let (_home, service, _mock) = start().await;
    for era in ["modern", "legacy"] {
        let listed = inspect(&clients, &service, era, &["--method", "tools/list"]);
        let tools = listed["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
        assert!(names.contains(&&json!("echo")), "{listed:#}");
        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            "echo",
            "--tool-arg",
            "input=hi",
        ];
        let called = inspect(&clients, &service, era, &call);
        assert_eq!(called["structuredContent"]["output"], "echo: hi", "{called:#}");
        let session = called["structuredContent"]["session_id"].as_str().unwrap();
        let uri = format!("session://{session}");
        let read = inspect(&clients, &service, era, &["--method", "resources/read", "--uri", &uri]);
        let text = read["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains("echo: hi"), "{text}");
    }
}

/// The baseline names the scenarios that need fixtures of the suite. A scenario that it names and
/// that passes is a failure, too.
#[tokio::test(flavor = "multi_thread")]
async fn the_conformance_suite_passes_but_for_what_needs_its_fixtures() {
    let Some((node, modules)) = mcp_clients() else { return };
    let (home, _mock) = conformance::home().await;
    let service = Service::start(&home).await;
    let fixtures = conformance::forward_to(&service.address).await;
    for revision in ["2026-07-28", "2025-11-25"] {
        let baseline = format!("{FOLDER}/conformance-{revision}.yml");
        assert!(fs::exists(&baseline).unwrap());
        let mut command = Command::new(&node);
        command
            .current_dir(home.path())
            .arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"))
            .args(["server", "--url", &format!("http://{}/mcp", fixtures.address)])
            .args(["--requirements", revision, "--expected-failures", &baseline]);
        succeed(&mut command);
    }
}
