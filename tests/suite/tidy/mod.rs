//! Invariants of the source tree that the compiler and its lints can't express.

mod imports;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use imports::{ImportGraph, identifier};

/// The imports that each module of the service may have besides its own. Cargo decides what crates
/// may import.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("metrics", &[]),
    ("spans", &["metrics"]),
    ("command_queue", &[]),
    ("outbox", &["metrics"]),
    ("retention", &[]),
    ("audit", &[]),
    ("run", &["metrics", "spans"]),
    ("api_key", &[]),
    ("tokens", &[]),
    ("http", &["api_key", "metrics", "run", "spans", "tokens"]),
    (
        "config",
        &["http", "metrics", "outbox", "retention", "run", "spans", "tokens"],
    ),
    ("telemetry", &["config"]),
    ("lifecycle", &[]),
];

/// Dependencies that belong to few packages, and these packages. The service is at the root. Tests
/// and the crate that they share may use any.
const OWNED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("axum", &["."]),
    ("csv", &["."]),
    ("governor", &["."]),
    ("object_store", &["crates/store"]),
    ("opentelemetry", &["."]),
    ("opentelemetry-http", &["."]),
    ("opentelemetry-otlp", &["."]),
    ("opentelemetry_sdk", &["."]),
    ("prometheus-client", &["."]),
    ("redis", &["crates/board"]),
    ("reqwest", &["crates/models", "crates/net", "crates/store"]),
    ("rustls", &[".", "crates/net", "crates/store"]),
    ("sqlx", &["crates/store"]),
    ("test-support", &[]),
    ("tokio-rustls", &[".", "crates/net"]),
    ("utoipa-axum", &["."]),
    ("utoipa-swagger-ui", &["."]),
    ("whoami", &["."]),
    ("x509-parser", &["."]),
];

/// The modules of the service that may name axum.
const MAY_NAME_AXUM: &[&str] = &["http"];

/// A file is one idea.
const MAX_LINES: usize = 500;

/// Folders inside which imports may have a circle, and why.
const MAY_HAVE_CIRCLES: &[(&str, &str)] = &[
    (
        "crates/agent/src/state",
        "a step holds the executions of subagents, which hold steps",
    ),
    (
        "crates/workspace/src/node",
        "a directory holds entries, which hold directories",
    ),
    (
        "crates/agent/src/record",
        "the record of a step holds those of subagents, which hold steps",
    ),
];

#[test]
fn modules_import_only_downwards() {
    let allowed: BTreeMap<_, _> = MAY_IMPORT.iter().copied().collect();
    let mut faults = Vec::new();
    for file in rust_files(Path::new("src")) {
        let module = top_module(&file);
        let Some(imports) = allowed.get(module.as_str()) else {
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
            if target != module && !imports.contains(&target) {
                let line = text[..offset].lines().count();
                faults.push(format!(
                    "{}:{line}: `{module}` must not use `crate::{target}`",
                    file.display()
                ));
            }
        }
        let names_axum = text
            .lines()
            .any(|line| !line.trim_start().starts_with("//") && mentions(line.trim_start(), "axum"));
        if names_axum && !MAY_NAME_AXUM.contains(&module.as_str()) {
            faults.push(format!("{}: only {MAY_NAME_AXUM:?} may use axum", file.display()));
        }
    }
    assert!(faults.is_empty(), "layering faults:\n{}", faults.join("\n"));
}

#[test]
fn dependencies_stay_in_the_packages_that_own_them() {
    let mut faults = Vec::new();
    let shipped = |package: &PathBuf| !package.ends_with("test-support");
    for package in packages().into_iter().filter(shipped) {
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        for (name, owners) in OWNED_DEPENDENCIES {
            if dependencies.contains_key(*name) && !owners.contains(&package.to_str().unwrap()) {
                faults.push(format!("{}: only {owners:?} may use {name}", package.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn files_and_folders_do_not_import_each_other_in_a_circle() {
    let mut faults = Vec::new();
    let mut excused = BTreeSet::new();
    for circle in packages()
        .iter()
        .flat_map(|package| ImportGraph::read(&package.join("src")).circles())
    {
        let is_inside = |folder: &&str| circle.iter().all(|member| member.starts_with(folder));
        match MAY_HAVE_CIRCLES.iter().map(|(folder, _)| *folder).find(is_inside) {
            Some(folder) => {
                excused.insert(folder);
            }
            None => faults.push(format!("{circle:?}")),
        }
    }
    assert!(faults.is_empty(), "these import each other:\n{}", faults.join("\n"));
    for (folder, _) in MAY_HAVE_CIRCLES {
        let advice = "has no circle any more: take it off the list";
        assert!(excused.contains(folder), "{folder} {advice}");
    }
}

#[test]
fn files_are_short_and_documented() {
    let mut faults = Vec::new();
    let roots = ["benches", "examples"].map(PathBuf::from);
    for root in sources().into_iter().chain(test_folders()).chain(roots) {
        for file in rust_files(&root) {
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
    for file in sources().iter().flat_map(|root| rust_files(root)) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains("#[allow") && !text.contains("#![allow"),
            "{}: use `expect` with a reason",
            file.display()
        );
    }
}

/// The folders of all packages: the service, and the crates that it composes.
fn packages() -> Vec<PathBuf> {
    let crates = fs::read_dir("crates").unwrap().map(|entry| entry.unwrap().path());
    let mut packages: Vec<_> = crates.chain([PathBuf::from(".")]).collect();
    packages.sort();
    packages
}

/// The folders with the sources of all packages.
fn sources() -> Vec<PathBuf> {
    packages().iter().map(|package| package.join("src")).collect()
}

/// The folders with the tests of all packages, beside those in the sources.
fn test_folders() -> Vec<PathBuf> {
    let folders = packages().into_iter().map(|package| package.join("tests"));
    folders.filter(|folder| folder.is_dir()).collect()
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
