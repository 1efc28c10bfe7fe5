//! Invariants of the source tree that the compiler and its lints can't express.

mod imports;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use imports::{ImportGraph, identifier};

/// Plain values: no IO, no async, nothing of ours but each other.
const PLAIN: &[&str] = &[
    "api_key",
    "causes",
    "clock",
    "http_headers",
    "ids",
    "json",
    "limits",
    "message",
    "model_parameters",
    "model_ref",
    "path_patterns",
    "secret_forms",
    "spelling",
    "tenant",
    "usage",
];

/// What each module may import besides plain values and itself. Anything else is a layering fault.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("egress", &["http_client", "outgoing"]),
    ("fair_share", &[]),
    ("http_client", &[]),
    ("off_thread", &["fair_share"]),
    ("outgoing", &["http_client"]),
    ("sandbox", &[]),
    ("session", &[]),
    ("workspace", &["off_thread", "session"]),
    ("checkout", &["off_thread", "session", "workspace"]),
    ("environment", &["checkout", "session", "workspace"]),
    ("agent", &["environment", "fair_share", "off_thread", "session"]),
    ("record", &["agent", "session"]),
    ("models", &["agent", "http_client", "session"]),
    (
        "tools",
        &[
            "agent",
            "checkout",
            "egress",
            "environment",
            "fair_share",
            "off_thread",
            "outgoing",
            "sandbox",
            "session",
            "workspace",
        ],
    ),
    (
        "webhooks",
        &["agent", "fair_share", "off_thread", "outgoing", "session"],
    ),
    (
        "store",
        &[
            "agent",
            "fair_share",
            "off_thread",
            "record",
            "session",
            "supervision",
            "workspace",
        ],
    ),
    (
        "mcp",
        &["agent", "off_thread", "outgoing", "sandbox", "session", "tools"],
    ),
    ("board", &["agent", "record", "session", "supervision"]),
    (
        "command_queue",
        &["checkout", "sandbox", "session", "store", "tools", "workspace"],
    ),
    ("outbox", &["record", "store", "webhooks"]),
    ("retention", &["store"]),
    (
        "run",
        &[
            "agent",
            "board",
            "environment",
            "fair_share",
            "off_thread",
            "record",
            "session",
            "store",
            "supervision",
            "workspace",
        ],
    ),
    (
        "http",
        &[
            "agent",
            "api_key",
            "fair_share",
            "off_thread",
            "record",
            "run",
            "session",
            "store",
            "workspace",
        ],
    ),
    ("api_key", &["session"]),
    ("config", &["agent", "models", "outgoing", "sandbox"]),
    ("telemetry", &["config"]),
    ("lifecycle", &[]),
    ("supervision", &[]),
];

/// Crates that belong to one module, and the modules that may name them.
const OWNED_CRATES: &[(&str, &[&str])] = &[
    ("axum", &["http"]),
    ("axum_server", &["http"]),
    ("governor", &["run"]),
    ("object_store", &["store"]),
    ("redis", &["board"]),
    ("reqwest", &["http_client", "models", "outgoing"]),
    ("rustls", &["egress", "http_client"]),
    ("sqlx", &["store"]),
    ("utoipa_axum", &["http"]),
    ("utoipa_swagger_ui", &["http"]),
];

/// A file is one idea.
const MAX_LINES: usize = 500;

/// Folders whose files may import each other in a circle, and why.
const MAY_HAVE_CIRCLES: &[(&str, &str)] = &[
    (
        "src/agent/state",
        "a step holds the executions of subagents, which hold steps",
    ),
    (
        "src/workspace/node",
        "a directory holds entries, which hold directories",
    ),
    (
        "src/record",
        "the record of a step holds those of subagents, which hold steps",
    ),
];

#[test]
fn modules_import_only_downwards() {
    let allowed: BTreeMap<_, _> = MAY_IMPORT.iter().copied().collect();
    let mut faults = Vec::new();
    for file in rust_files(Path::new("src")) {
        let module = top_module(&file);
        let is_plain = PLAIN.contains(&module.as_str());
        let Some(imports) = allowed.get(module.as_str()).copied().or(is_plain.then_some(&[][..])) else {
            let composes = ["app", "cli", "lib", "main"].contains(&module.as_str());
            assert!(
                composes,
                "{}: tell this test what the module may import",
                file.display()
            );
            continue;
        };
        let text = fs::read_to_string(&file).unwrap();
        for (offset, target) in crate_roots(&text) {
            if target != module && !PLAIN.contains(&target) && !imports.contains(&target) {
                let line = text[..offset].lines().count();
                faults.push(format!(
                    "{}:{line}: `{module}` must not use `crate::{target}`",
                    file.display()
                ));
            }
        }
    }
    assert!(faults.is_empty(), "layering faults:\n{}", faults.join("\n"));
}

#[test]
fn crates_stay_in_the_modules_that_own_them() {
    let mut faults = Vec::new();
    for file in rust_files(Path::new("src")) {
        let module = top_module(&file);
        let text = fs::read_to_string(&file).unwrap();
        for (name, owners) in OWNED_CRATES {
            let named = text.lines().any(|line| {
                let code = line.trim_start();
                !code.starts_with("//") && mentions(code, name)
            });
            if named && !owners.contains(&module.as_str()) {
                faults.push(format!("{}: only {owners:?} may use `{name}`", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn files_of_a_module_do_not_import_each_other_in_a_circle() {
    let graph = ImportGraph::read(Path::new("src"));
    let mut faults = Vec::new();
    let mut excused = BTreeSet::new();
    for circle in graph.circles() {
        let is_inside = |folder: &&str| circle.iter().all(|file| file.starts_with(&format!("{folder}/")));
        match MAY_HAVE_CIRCLES.iter().map(|(folder, _)| *folder).find(is_inside) {
            Some(folder) => {
                excused.insert(folder);
            }
            None => faults.push(circle.join(" -> ")),
        }
    }
    assert!(faults.is_empty(), "files import each other:\n{}", faults.join("\n"));
    for (folder, _) in MAY_HAVE_CIRCLES {
        let advice = "has no circle any more: take it off the list";
        assert!(excused.contains(folder), "{folder} {advice}");
    }
}

#[test]
fn files_are_short_and_documented() {
    let mut faults = Vec::new();
    for root in ["src", "tests", "benches", "examples"] {
        for file in rust_files(Path::new(root)) {
            let text = fs::read_to_string(&file).unwrap();
            if !text.starts_with("//!") {
                faults.push(format!("{}: does not say what it is for", file.display()));
            }
            if text.lines().count() > MAX_LINES {
                faults.push(format!("{}: longer than {MAX_LINES} lines", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn lints_are_not_switched_off() {
    for file in rust_files(Path::new("src")) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains("#[allow") && !text.contains("#![allow"),
            "{}: use `expect` with a reason",
            file.display()
        );
    }
}

/// The module right below `src` that a file belongs to.
fn top_module(file: &Path) -> String {
    let below = file.strip_prefix("src").unwrap();
    let first = below.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// Returns whether a line of code names the crate in a path.
fn mentions(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let is_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '"');
        !is_word && code[at + name.len()..].starts_with("::")
    })
}

/// Every module named right after `crate::`, with its byte offset. Understands `crate::{a::{b, c},
/// d}` groups that span lines.
fn crate_roots(text: &str) -> Vec<(usize, &str)> {
    let mut roots = Vec::new();
    for (at, marker) in text.match_indices("crate::") {
        let start = at + marker.len();
        let Some(group) = text[start..].strip_prefix('{') else {
            roots.push((start, identifier(&text[start..])));
            continue;
        };
        let (mut depth, mut expects_name) = (1, true);
        for (offset, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => expects_name = true,
                c if depth == 1 && expects_name && c.is_alphabetic() => {
                    roots.push((start + 1 + offset, identifier(&group[offset..])));
                    expects_name = false;
                }
                _ => (),
            }
            if depth == 0 {
                break;
            }
        }
    }
    roots
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}
