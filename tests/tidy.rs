//! Invariants of the source tree that the compiler and its lints can't express.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// Plain values: no IO, no async, nothing of ours but each other.
const PLAIN: &[&str] = &[
    "api_key",
    "clock",
    "ids",
    "json",
    "limits",
    "message",
    "model_parameters",
    "model_ref",
    "retry_after",
    "spelling",
    "tenant",
    "usage",
];

/// What each module may import besides plain values and itself. Anything else is a layering fault.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("fair_share", &[]),
    ("http_client", &[]),
    ("off_thread", &["fair_share"]),
    ("session", &[]),
    ("agent", &["fair_share", "off_thread", "session"]),
    ("record", &["agent", "session"]),
    ("models", &["agent", "http_client", "session"]),
    ("tools", &["agent", "session"]),
    ("environment", &["agent", "session"]),
    (
        "webhooks",
        &["agent", "fair_share", "http_client", "off_thread", "session"],
    ),
    (
        "store",
        &["agent", "fair_share", "off_thread", "record", "session", "supervision"],
    ),
    ("board", &["agent", "record", "session", "supervision"]),
    ("outbox", &["record", "store", "webhooks"]),
    ("retention", &["store"]),
    (
        "run",
        &[
            "agent",
            "board",
            "fair_share",
            "off_thread",
            "record",
            "session",
            "store",
            "supervision",
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
        ],
    ),
    ("api_key", &["session"]),
    ("config", &[]),
    ("telemetry", &["config"]),
    ("lifecycle", &[]),
    ("supervision", &[]),
];

/// Crates that belong to one module, and the modules that may name them.
const OWNED_CRATES: &[(&str, &[&str])] = &[
    ("axum", &["http"]),
    ("axum_server", &["http"]),
    ("governor", &["run"]),
    ("redis", &["board"]),
    ("reqwest", &["http_client", "models", "webhooks"]),
    ("rustls", &["http_client"]),
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
        "src/record",
        "the record of a step holds those of subagents, which hold steps",
    ),
    ("src/http", "to be mended"),
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
                faults.push(format!("{}: says not what it is for", file.display()));
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

/// Tells whether a line of code names the crate in a path.
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

/// Which file imports an item of which other file of its module. An import of a re-exported name is
/// an import of the file that defines it. Tests inside a file don't count: they may use whatever
/// they test with.
struct ImportGraph {
    /// The code of each file, by the path of its module: `run::queue::worker`.
    files: BTreeMap<Vec<String>, SourceFile>,
}

struct SourceFile {
    path: String,
    code: String,
}

impl ImportGraph {
    fn read(root: &Path) -> Self {
        let files = rust_files(root).into_iter().map(|file| {
            let below = file.strip_prefix(root).unwrap().with_extension("");
            let names = below.iter().map(|name| name.to_str().unwrap().to_owned());
            let module = names.filter(|name| name != "mod" && name != "lib").collect();
            let text = fs::read_to_string(&file).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let code = lines.collect::<Vec<_>>().join("\n");
            let path = file.to_str().unwrap().to_owned();
            (module, SourceFile { path, code })
        });
        Self { files: files.collect() }
    }

    /// Returns each circle once, as the paths of its files; the last is the first again.
    fn circles(&self) -> Vec<Vec<String>> {
        let imports: BTreeMap<_, _> = self.files.keys().map(|from| (from, self.imports(from))).collect();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for start in self.files.keys() {
            if seen.contains(start) {
                continue;
            }
            // The shortest way back to the start, breadth first.
            let mut ways = VecDeque::from([vec![start]]);
            let mut visited = BTreeSet::new();
            while let Some(way) = ways.pop_front() {
                for to in &imports[way[way.len() - 1]] {
                    let longer = [&way[..], &[to]].concat();
                    if to == start {
                        circles.push(longer.iter().map(|module| self.files[*module].path.clone()).collect());
                        seen.extend(way.iter().copied());
                        ways.clear();
                        break;
                    }
                    if visited.insert(to) {
                        ways.push_back(longer);
                    }
                }
            }
        }
        circles
    }

    /// Returns the files of the same module that a file imports from. What it only re-exports, it
    /// does not use.
    fn imports(&self, from: &[String]) -> BTreeSet<Vec<String>> {
        let exports = exports_of(&self.files[from].code);
        let paths = paths_of(&self.files[from].code).into_iter();
        let paths = paths.filter(|path| !exports.contains(path));
        let absolute = paths.filter_map(|path| absolute(from, &path));
        let targets = absolute.filter_map(|path| self.target(&path, 0));
        targets
            .filter(|to| to[..] != *from && to.first() == from.first())
            .collect()
    }

    /// Finds the file that defines what a path leads to.
    fn target(&self, path: &[String], depth: usize) -> Option<Vec<String>> {
        let length = (1..=path.len())
            .rev()
            .find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(length);
        if let Some(item) = rest.first().filter(|_| depth < 8) {
            let is_export = |export: &Vec<String>| {
                export.last() == Some(item) && export.first().is_some_and(|first| first == "self")
            };
            let exports = exports_of(&self.files[module].code);
            if let Some(export) = exports.iter().find(|export| is_export(export)) {
                return self.target(&absolute(module, export)?, depth + 1);
            }
        }
        Some(module.to_vec())
    }
}

/// Every path in the code that begins with `crate`, `self` or `super`; groups in braces are spelled
/// out.
fn paths_of(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for root in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                spell_out(&code[at..], &[], &mut paths);
            }
        }
    }
    paths
}

/// The paths of re-exports, such as `self::worker::Worker` of `pub(super) use
/// self::worker::Worker;`.
fn exports_of(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("use self::") {
        let line = code[..at].rsplit('\n').next().unwrap_or_default();
        if line.trim_start().starts_with("pub") {
            spell_out(&code[at + "use ".len()..], &[], &mut paths);
        }
    }
    paths
}

/// Adds the paths at the beginning of the text to the list, and returns where they end.
fn spell_out(text: &str, above: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let name = identifier(text);
    let path = [above, &[name.to_owned()]].concat();
    let mut at = name.len();
    let Some(below) = text[at..].strip_prefix("::") else {
        paths.push(path);
        return at;
    };
    at += 2;
    if !below.starts_with('{') {
        return at + spell_out(below, &path, paths);
    }
    at += 1;
    loop {
        let rest = text[at..].trim_start_matches([' ', '\n', ',']);
        at = text.len() - rest.len();
        if rest.starts_with('}') || rest.is_empty() {
            return at + 1;
        }
        at += spell_out(rest, &path, paths).max(1);
        let rest = &text[at..];
        // A name may have another one here.
        at += rest.find([',', '}', '{']).unwrap_or(rest.len());
    }
}

/// Returns a path from the root of the crate.
fn absolute(module: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut base = module.to_vec();
    let mut rest = path;
    while let Some((first, below)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "self" => (),
            "super" => drop(base.pop()?),
            _ => break,
        }
        rest = below;
    }
    Some([&base, rest].concat())
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    &text[..end.unwrap_or(text.len())]
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
