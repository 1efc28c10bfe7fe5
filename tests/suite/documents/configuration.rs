//! Compares docs/configuration.md with the configuration: every key, every variable and every file
//! that it shows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use agent::definition::AgentDefinition;
use agent_runtime::config::{self, Sources};
use tools::HttpToolDefinition;
use tools::mcp::McpDefinition;

use super::blocks::{blocks, code_spans, pages, read};

const SECTIONS: [&str; 20] = [
    "http",
    "auth",
    "console",
    "store",
    "board",
    "runs",
    "queue",
    "limits",
    "idempotency",
    "models",
    "providers",
    "prices",
    "workspace",
    "tools",
    "webhooks",
    "retention",
    "context_windows",
    "capabilities",
    "agents",
    "log",
];

/// Returns what is wrong with a key; a refused value is fine.
fn fault(sources: &Sources) -> Option<String> {
    let fault = config::load(sources).err()?.to_string();
    fault.contains("unknown key").then_some(fault)
}

fn key_fault(key: &str) -> Option<String> {
    let key = key
        .replace("NAME", "openai")
        .replace("\"PROVIDER/MODEL\"", "\"openai/x\"");
    fault(&Sources {
        overrides: vec![(key, "1".to_owned())],
        ..Sources::default()
    })
}

#[test]
fn every_key_that_a_document_names_exists() {
    assert!(key_fault("http.lsten").is_some() && key_fault("http.listen").is_none());
    let mut named = BTreeSet::new();
    for page in pages() {
        for span in code_spans(&read(&page)) {
            let span = span.split([' ', '=']).next().unwrap_or_default();
            let Some((section, rest)) = span.split_once('.') else {
                continue;
            };
            let is_key = SECTIONS.contains(&section)
                && rest
                    .bytes()
                    .all(|c| c.is_ascii_alphanumeric() || b"_.\"/-".contains(&c));
            if is_key {
                assert_eq!(key_fault(span), None, "{page}");
                named.insert(section.to_owned());
            }
        }
    }
    assert!(named.len() >= 7, "{named:?}");
}

#[test]
fn every_section_is_in_the_page() {
    let page = read("docs/configuration.md");
    for section in SECTIONS {
        assert!(
            page.contains(&format!("`[{section}")),
            "docs/configuration.md lacks [{section}]"
        );
    }
}

#[test]
fn every_variable_that_a_document_names_is_read() {
    let defaults = read("config/default.toml");
    let mut named = 0;
    for page in pages() {
        let text = read(&page);
        let words = text.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
        for word in words.collect::<BTreeSet<_>>() {
            if let Some(name) = word.strip_prefix("AGENT_RUNTIME__").filter(|name| name.contains("__")) {
                let variable = format!("AGENT_RUNTIME__{}", name.replace("__NAME__", "__OPENAI__"));
                if variable.contains("SECTION__KEY") {
                    continue;
                }
                let environment = BTreeMap::from([(variable, "/nowhere".to_owned())]);
                let sources = Sources {
                    environment,
                    ..Sources::default()
                };
                assert_eq!(fault(&sources), None, "{page}");
                named += 1;
            } else if word == "GOOGLE_BASE_URL" {
                // The client of the object store reads it.
            } else if word.ends_with("_API_KEY") || word.ends_with("_BASE_URL") {
                assert!(defaults.contains(word), "{page}: nothing reads {word}");
                named += 1;
            }
        }
    }
    assert!(named > 5);
}

#[test]
fn every_file_that_the_page_shows_can_be_used() {
    let mut used = 0;
    for page in pages() {
        for block in blocks(&read(&page))
            .into_iter()
            .filter(|block| block.language == "toml")
        {
            let location = format!("{page}:{}", block.line);
            match block.mark.as_deref() {
                Some("agent") => check_agent(&location, &block.text),
                Some(mark) if mark == "tool" || mark.starts_with("file config/tools/") => {
                    check_tool(&location, &block.text);
                }
                Some(mark) if mark == "mcp" || mark.starts_with("file config/mcp/") => {
                    check_server(&location, &block.text);
                }
                _ => check_file(&location, &block.text),
            }
            used += 1;
        }
    }
    assert!(used >= 3);
}

#[test]
fn the_examples_of_agents_can_be_used() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/config/agents");
    let mut used = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "example" || end == "toml") {
            check_agent(&path.display().to_string(), &fs::read_to_string(&path).unwrap());
            used += 1;
        }
    }
    assert!(used >= 3);
}

fn check_agent(location: &str, text: &str) {
    let agent: AgentDefinition = toml::from_str(text).unwrap_or_else(|error| panic!("{location}: {error}"));
    assert!(AgentDefinition::is_valid_name(&agent.name), "{location}");
}

fn check_tool(location: &str, text: &str) {
    let tool: HttpToolDefinition = toml::from_str(text).unwrap_or_else(|error| panic!("{location}: {error}"));
    tool.source().unwrap_or_else(|fault| panic!("{location}: {fault}"));
}

fn check_server(location: &str, text: &str) {
    let server: Result<McpDefinition, _> = toml::from_str(text);
    server.unwrap_or_else(|error| panic!("{location}: {error}"));
}

fn check_file(location: &str, text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent-runtime.toml");
    fs::write(&file, text).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    // A secret that it names need not be on this machine.
    let error = config::load(&sources).err().map(|error| error.to_string());
    assert!(
        error
            .as_ref()
            .is_none_or(|error| error.contains("cannot read the secret")),
        "{location}: {error:?}"
    );
}
