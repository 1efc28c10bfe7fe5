//! Servers that others have written, as programs in the sandbox and over HTTP.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use test_support::languages::{mcp_servers_of_node, mcp_servers_of_python};
use test_support::raw_server::{RawReply, RawServer};
use test_support::wait::until;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use values::json::Value;

use super::McpApp;
use crate::sandbox_network::has_namespaces;
use crate::support::test_app::session_path;
use crate::support::text::assert_contains;

/// More than a program needs to start, even on a busy machine.
const PATIENT: &str = "connect_timeout = '3m'\ntimeout = '2m'\n";

/// The definition of a server in an environment of Python, which may also read a path.
fn python_server(environment: &Path, name: &str, args: &[&str], path: Option<&Path>) -> String {
    let program = environment.join("bin").join(name);
    // The environment has links to the Python that it was made with.
    let python = environment.join("bin/python").canonicalize().unwrap();
    let python = python.ancestors().nth(2).unwrap();
    let read_only: Vec<_> = [environment, python].into_iter().chain(path).collect();
    definition(&program, args, &read_only)
}

/// The definition of a server of the official packages for Node.js.
fn node_server((node, modules): &(impl AsRef<Path>, impl AsRef<Path>), name: &str, args: &[&str]) -> String {
    let (node, modules) = (node.as_ref(), modules.as_ref());
    let script = modules.join("@modelcontextprotocol").join(name).join("dist/index.js");
    let args = [&[script.to_str().unwrap()], args].concat();
    definition(node, &args, &[node, modules])
}

fn definition(program: &Path, args: &[&str], read_only: &[&Path]) -> String {
    let program = program.display();
    format!("command = '{program}'\nargs = {args:?}\nread_only = {read_only:?}\n{PATIENT}")
}

/// The result of a call as the session has it.
async fn stored_result(app: &McpApp, tool: &str, arguments: Value) -> String {
    let run = app.call_tool(None, tool, arguments).await;
    let messages = app.get(&session_path(&run, "/messages")).await;
    let result = &messages["data"][2]["content"][0];
    assert!(!result["is_error"].as_bool().unwrap_or_default(), "{messages:#}");
    result["content"].to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mcp_server_time_returns_the_time() {
    let Some(environment) = mcp_servers_of_python() else {
        return;
    };
    let definition = python_server(&environment, "mcp-server-time", &["--local-timezone", "UTC"], None);
    let app = McpApp::alone(&[("time", "", &definition)]).await;
    let now = stored_result(&app, "time_get_current_time", json!({"timezone": "Europe/Zurich"})).await;
    assert!(now.contains("Europe/Zurich") && now.contains("datetime"), "{now}");
    assert_eq!(app.offered()[..2], ["time_convert_time", "time_get_current_time"]);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mcp_server_git_reads_a_repository() {
    let Some(environment) = mcp_servers_of_python() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]);
        let status = git.args(args).current_dir(folder.path()).stdout(Stdio::null()).status();
        assert!(status.unwrap().success());
    };
    git(&["init", "-q"]);
    std::fs::write(folder.path().join("poem"), "the yellow fog").unwrap();
    git(&["add", "poem"]);
    git(&["commit", "-q", "-m", "Add a poem"]);
    let path = folder.path().to_str().unwrap();
    let definition = python_server(
        &environment,
        "mcp-server-git",
        &["--repository", path],
        Some(folder.path()),
    );
    let app = McpApp::alone(&[("git", "", &definition)]).await;
    let log = stored_result(&app, "git_git_log", json!({"repo_path": path})).await;
    assert!(log.contains("Add a poem") && log.contains("Ada"), "{log}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mcp_server_git_stages_files_in_a_repository_in_its_own_directory() {
    let Some(environment) = mcp_servers_of_python() else {
        return;
    };
    let program = environment.join("bin/mcp-server-git");
    let script = format!(
        "git init -q -b main . && git config user.name Ada && git config user.email ada@example.org \
         && echo 'the yellow fog' > poem && exec '{}' --repository .",
        program.display()
    );
    let definition = python_server(&environment, "mcp-server-git", &["-c", &script], None);
    let definition = definition.replace(&format!("command = '{}'", program.display()), "command = 'sh'");
    let app = McpApp::alone(&[("git", "", &definition)]).await;
    let status = async || stored_result(&app, "git_git_status", json!({"repo_path": "."})).await;
    let before = status().await;
    assert_contains!(before, "Untracked files:", "poem");
    stored_result(&app, "git_git_add", json!({"repo_path": ".", "files": ["poem"]})).await;
    let staged = status().await;
    assert!(staged.contains("new file:") && staged.contains("poem"), "{staged}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mcp_server_fetch_has_no_network_unless_the_operator_gives_it() {
    let Some(environment) = mcp_servers_of_python() else {
        return;
    };
    let definition = python_server(&environment, "mcp-server-fetch", &["--ignore-robots-txt"], None);
    let app = McpApp::alone(&[("web", "", &definition)]).await;
    let refused = app.use_tool("web_fetch", json!({"url": "http://127.0.0.1:9/"})).await;
    assert!(refused.contains("127.0.0.1:9"), "{refused}");
    assert!(app.offered().contains(&"web_fetch".to_owned()));
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mcp_server_fetch_reads_pages_of_the_hosts_of_commands() {
    let Some(environment) = mcp_servers_of_python() else {
        return;
    };
    if !has_namespaces() {
        return;
    }
    let page = "<html><head><title>Weather</title></head><body><p>The <b>yellow</b> fog.</p></body></html>";
    let site = RawServer::start(move |_| RawReply::new(200, &[("content-type", "text/html")], page)).await;
    // The server turns HTML into text with node, if there is one. For that it runs `npm install` in
    // its own folder, which is read-only here. Without node it does that in Python.
    let args = ["--allow-private-ips", "--ignore-robots-txt"];
    let definition = python_server(&environment, "mcp-server-fetch", &args, None);
    let bin = environment.join("bin");
    let definition = format!("{definition}network = true\nenv = {{ PATH = '{}' }}\n", bin.display());
    let settings = [
        ("sandbox.network.allow_hosts", "[\"127.0.0.1\"]"),
        ("sandbox.network.allow_networks", "[\"127.0.0.1\"]"),
        ("sandbox.network.ports", "[]"),
    ];
    let app = McpApp::alone_with(&[("web", "", &definition)], &settings).await;
    let url = site.url("/page");
    let text = stored_result(&app, "web_fetch", json!({"url": url})).await;
    assert_contains!(text, &format!("Contents of {url}:"), "The yellow fog.");
    let raw = stored_result(&app, "web_fetch", json!({"url": url, "raw": true})).await;
    assert!(raw.contains("<b>yellow</b>"), "{raw}");

    let other = format!("http://127.0.0.2:{}/", site.port());
    let refused = app.use_tool("web_fetch", json!({"url": other})).await;
    assert!(refused.ends_with("status code 403"), "{refused}");
    assert_eq!(site.lines(), ["GET /page", "GET /page"]);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_filesystem_works_in_its_directory() {
    let Some(node) = mcp_servers_of_node() else { return };
    let definition = node_server(&node, "server-filesystem", &["."]);
    let app = McpApp::alone(&[("files", "", &definition)]).await;
    let note = json!({"path": "note.txt", "content": "made by a server"});
    let written = stored_result(&app, "files_write_file", note).await;
    assert!(written.contains("note.txt"), "{written}");
    let read = stored_result(&app, "files_read_text_file", json!({"path": "note.txt"})).await;
    assert!(read.contains("made by a server"), "{read}");
    let outside = app
        .use_tool("files_read_text_file", json!({"path": "/etc/passwd"}))
        .await;
    assert!(outside.contains("denied"), "{outside}");
    app.finish().await;
}

/// Checks the official server `everything` over any transport.
async fn check_everything(app: &McpApp) {
    let echo = stored_result(app, "all_echo", json!({"message": "hello"})).await;
    assert!(echo.contains("Echo: hello"), "{echo}");
    let sum = stored_result(app, "all_get-sum", json!({"a": 2, "b": 3})).await;
    assert!(sum.contains("The sum of 2 and 3 is 5"), "{sum}");
    let image = stored_result(app, "all_get-tiny-image", json!({})).await;
    assert!(image.contains("image/png"), "{image}");
    let resources = stored_result(app, "all_list_resources", json!({})).await;
    assert!(resources.contains("demo://"), "{resources}");
    let prompts = stored_result(app, "all_list_prompts", json!({})).await;
    assert!(prompts.contains("simple-prompt"), "{prompts}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_everything_serves_as_a_program() {
    let Some(node) = mcp_servers_of_node() else { return };
    let definition = node_server(&node, "server-everything", &["stdio"]);
    let app = McpApp::alone(&[("all", "", &definition)]).await;
    check_everything(&app).await;
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_everything_serves_over_http() {
    let Some((node, modules)) = mcp_servers_of_node() else {
        return;
    };
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Command::new(node)
        .args([script.to_str().unwrap(), "streamableHttp"])
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let _server: Child = server.unwrap();
    until("the server listens", || async {
        TcpStream::connect(("127.0.0.1", port)).await.is_ok()
    })
    .await;
    let app = McpApp::alone(&[("all", &format!("http://127.0.0.1:{port}/mcp"), PATIENT)]).await;
    check_everything(&app).await;
    app.finish().await;
}
