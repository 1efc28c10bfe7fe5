//! The tool `shell` in the whole service, with a network that the configuration allows.

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::raw_server::{RawReply, RawServer};
use values::json::Value;

use super::has_namespaces;
use crate::support::mock_model::{MockModel, Reply, content_text};
use crate::support::test_app::TestApp;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_reaches_an_allowed_host_and_no_other() {
    if !has_namespaces() {
        return;
    }
    let server = RawServer::start(|_| RawReply::text("permitted")).await;
    let script = format!(
        "curl -sS {url}; echo; curl -sS -o /dev/null -w '%{{http_code}}\\n' http://127.0.0.2:{port}/; \
         export CHANGED=1; env | grep -ci _proxy",
        url = server.url("/"),
        port = server.port()
    );
    let mock = MockModel::start(move |request| {
        let messages = request["messages"].as_array().unwrap();
        match messages.iter().filter(|message| message["role"] == "tool").count() {
            0 => Reply::call("a", "shell", &json!({"command": script})),
            1 => Reply::call(
                "b",
                "shell",
                &json!({"command": "env | grep -ci _proxy; echo $CHANGED"}),
            ),
            _ => Reply::text("done"),
        }
    })
    .await;
    let database = TestDatabase::sqlite();
    let settings = [
        ("sandbox.network.allow_hosts", "[\"127.0.0.1\"]"),
        ("sandbox.network.allow_networks", "[\"127.0.0.1\"]"),
        ("sandbox.network.ports", "[]"),
    ];
    let app = TestApp::start(database.url(), &mock, &settings).await;
    assert!(app.app.commands.is_required());
    app.put_agent("worker", json!({"model": "mock/m", "tools": ["shell"]}))
        .await;
    let result = app.run_with(json!({"agent": "worker", "input": "go"})).await;
    assert_eq!(result["status"], "completed", "{result:#}");

    let requests = mock.requests();
    let description = requests[0]["tools"][0]["function"]["description"].as_str().unwrap();
    assert!(
        description.contains("connects to these hosts: 127.0.0.1"),
        "{description}"
    );
    let results: Vec<String> = requests[2]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message: &Value| content_text(&message["content"]))
        .collect();
    assert_eq!(results, ["permitted\n403\n6\n", "6\n1\n"]);
    // The session has the variable of the command, and not those of the network.
    let session = result["session_id"].as_str().unwrap();
    let environment = app.get(&format!("/v1/sessions/{session}")).await.to_string();
    assert!(!environment.contains("3128"), "{environment}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_has_a_placeholder_and_trusts_the_proxy() {
    if !has_namespaces() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "hunter2-hunter2\n").unwrap();
    // Nobody listens there, so that a response can only be that of the proxy, inside TLS.
    let gone = RawServer::start(|_| RawReply::text("")).await;
    let host = format!("127.0.0.1:{}", gone.port());
    drop(gone);
    let python = "import os, urllib.request as r, urllib.error\ntry: r.urlopen(os.environ['URL'])\n\
                  except urllib.error.HTTPError as error: print(error.code)";
    let script = format!(
        "export URL=https://{host}/; curl -s -o /dev/null -w '%{{http_code}}\\n' $URL; \
         /usr/bin/python3 -c \"{python}\"; \
         GIT_CONFIG_NOSYSTEM=1 /usr/bin/git ls-remote $URL 2>&1 | grep -o 'error: 502'; \
         echo $TOKEN; env | grep hunter; wc -l < $SSL_CERT_FILE | grep -c ..."
    );
    let mock = MockModel::start(move |request| {
        let messages = request["messages"].as_array().unwrap();
        if messages.iter().any(|message| message["role"] == "tool") {
            Reply::text("done")
        } else {
            Reply::call("a", "shell", &json!({"command": script}))
        }
    })
    .await;
    let database = TestDatabase::sqlite();
    let settings = [
        ("sandbox.network.allow_hosts", "[\"127.0.0.1\"]"),
        ("sandbox.network.allow_networks", "[\"127.0.0.1\"]"),
        ("sandbox.network.ports", "[]"),
        ("sandbox.network.secrets.TOKEN.host", host.as_str()),
        ("sandbox.network.secrets.TOKEN.header", "authorization"),
        ("sandbox.network.secrets.TOKEN.secret", "shop"),
        ("tools.secrets.shop.file", secret.to_str().unwrap()),
    ];
    let app = TestApp::start(database.url(), &mock, &settings).await;
    app.put_agent("worker", json!({"model": "mock/m", "tools": ["shell"]}))
        .await;
    let result = app.run_with(json!({"agent": "worker", "input": "go"})).await;
    assert_eq!(result["status"], "completed", "{result:#}");
    let requests = mock.requests();
    let message = requests[1]["messages"].as_array().unwrap().last().unwrap();
    let text = content_text(&message["content"]);
    assert_eq!(text, "502\n502\nerror: 502\nplaceholder-of-TOKEN\n1\n");
    app.finish().await;
}
