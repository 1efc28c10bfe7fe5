//! Runs every command and every program of the documents in order, against one service per
//! document, and compares the responses that they show.

use std::mem;

use super::blocks::{Block, blocks, read};
use super::known::{Known, as_json, parse_shown};
use super::order::check_order;
use super::service::Service;
use crate::sandbox_network::has_namespaces;

/// Beginnings of commands that are not run: they need what a test must not touch, or build the
/// service again.
const LEFT_OUT: &[&str] = &[
    "cargo ",
    "docker ",
    "./scripts/",
    "agent-runtime openapi > openapi.json\npip install ",
    "SLOW=",
];

macro_rules! pages {
    ($($name:ident: $page:literal,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                run_document($page).await;
            }
        )+
    };
}

pages! {
    readme: "README.md",
    commands: "docs/commands.md",
    api: "docs/api.md",
    sessions: "docs/sessions.md",
    files_of_sessions: "docs/files.md",
    environments: "docs/environments.md",
    threads: "docs/threads.md",
    events: "docs/events.md",
    agents: "docs/agents.md",
    tools: "docs/tools.md",
    approvals: "docs/approvals.md",
    hooks: "docs/hooks.md",
    subagents: "docs/subagents.md",
    long_conversations: "docs/compaction.md",
    models: "docs/models.md",
    budgets: "docs/budgets.md",
    tools_over_http: "docs/http-tools.md",
    mcp_servers: "docs/mcp.md",
    agents_as_mcp_tools: "docs/mcp-server.md",
    clients_of_openai: "docs/openai.md",
    pages_with_ai_sdk: "docs/ai-sdk.md",
    pages_with_ag_ui: "docs/ag-ui.md",
    clients_of_langgraph: "docs/langgraph.md",
    console: "docs/console.md",
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_on_the_sandbox_shows_what_happens() {
    run_document("docs/sandbox.md").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_on_the_network_of_commands_shows_what_happens() {
    // Elsewhere the service refuses to start, as the page says.
    if has_namespaces() {
        run_document("docs/sandbox-network.md").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_that_poll_a_run_wait_while_it_is_queued() {
    let Some(service) = Service::start(&[]).await else {
        return;
    };
    for name in ["README.md", "docs/api.md"] {
        let text = read(name);
        let polling = text.lines().find_map(|line| line.strip_prefix("until curl "));
        let (_, polling) = polling.and_then(|line| line.split_once(" | ")).unwrap();
        let ends = polling.strip_suffix("; do sleep 1; done").unwrap();

        let posting = "curl -sS http://127.0.0.1:8080/v1/runs -H 'content-type: application/json' -d";
        let run = |mode| {
            service.run(&format!(
                r#"{posting} '{{"input": "Hello", "mode": "{mode}"}}' | {ends}"#
            ))
        };
        assert!(run("sync").unwrap().contains(r#""status":"completed""#), "{name}");
        assert!(
            run("async").is_err(),
            "{name}: a queued run passes for one that has ended"
        );
    }
}

async fn run_document(name: &str) {
    let text = read(name);
    let Some(service) = Service::start(&files(&text)).await else {
        return;
    };
    let mut known = Known::default();
    let mut given: Option<String> = None;
    let mut compared = 0;
    let mut is_left_out = false;
    for block in blocks(&text) {
        let failed = |fault: String| -> ! { panic!("{name}:{}: {fault}", block.line) };
        match (block.language.as_str(), block.mark.as_deref()) {
            ("sh", mark) => {
                check_unshown(given.take()).unwrap_or_else(|fault| failed(fault));
                given = run_block(&service, &known, &block, mark).unwrap_or_else(|fault| failed(fault));
            }
            ("python", None) => {
                check_unshown(given.take()).unwrap_or_else(|fault| failed(fault));
                let output = service.run_python(&known.translate(&block.text)).transpose();
                given = output.unwrap_or_else(|fault| failed(fault));
                is_left_out = given.is_none();
            }
            ("json" | "text", None) if mem::take(&mut is_left_out) => (),
            ("json" | "text", None) => {
                let Some(given) = given.take() else {
                    failed("no command stands before this answer".to_owned())
                };
                check_output(&mut known, &block, &given).unwrap_or_else(|fault| failed(fault));
                compared += 1;
            }
            // `process::faces` has pages with the libraries of these.
            ("jsx", None) | ("text", Some("picture")) => (),
            ("json", Some("form")) => drop(parse_shown(&block.text).unwrap_or_else(|fault| failed(fault.to_string()))),
            ("toml", _) => drop(
                block
                    .text
                    .parse::<toml::Table>()
                    .unwrap_or_else(|fault| failed(fault.to_string())),
            ),
            (language, mark) => failed(format!(
                "a block of {language:?} marked {mark:?} is nothing that can be checked"
            )),
        }
    }
    check_unshown(given).unwrap();
    assert!(compared > 0, "{name}: no answer was compared");
}

/// The files that a page shows and the service reads when it starts.
fn files(text: &str) -> Vec<(String, String)> {
    let files = blocks(text).into_iter().filter_map(|block| {
        let name = block.mark?.strip_prefix("file ")?.to_owned();
        Some((name, block.text))
    });
    files.collect()
}

/// Runs the commands of a block; `None` if a test can't run them.
fn run_block(service: &Service, known: &Known, block: &Block, mark: Option<&str>) -> Result<Option<String>, String> {
    match mark {
        None => service.run(&known.translate(&block.text)).map(Some),
        Some("starts the service") => Ok(Some(service.banner.clone())),
        Some("not run") if LEFT_OUT.iter().any(|begin| block.text.starts_with(begin)) => Ok(None),
        Some(mark) => Err(format!(
            "the mark {mark:?} is not known, or not allowed for these commands"
        )),
    }
}

fn check_output(known: &mut Known, block: &Block, given: &str) -> Result<(), String> {
    if block.language == "text" {
        return known.check_lines(&block.text, given);
    }
    let shown = parse_shown(&block.text).map_err(|error| error.to_string())?;
    let value = serde_json::from_str(given).map_err(|error| format!("{error} in the answer\n{given}"))?;
    known.check_json("", &shown, &value)?;
    check_order(&as_json(&block.text), given)
}

/// Fails on a problem or a failed run in a response that the document does not show.
fn check_unshown(given: Option<String>) -> Result<(), String> {
    let given = given.unwrap_or_default();
    let bad = ["\"/docs/problems#", "\"status\":\"failed\""]
        .iter()
        .any(|sign| given.contains(sign));
    if bad {
        Err(format!("the command before it failed:\n{given}"))
    } else {
        Ok(())
    }
}
