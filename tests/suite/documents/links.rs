//! Follows what the documents point to: files, headings, and the tests that they name.

use std::fs;
use std::path::{Path, PathBuf};

use super::blocks::{code_spans, pages, read, spans_of};

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["", "docs"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found
}

/// The addresses of a document's links, without those in fenced blocks.
fn links(markdown: &str) -> Vec<String> {
    let mut fenced = false;
    let lines = markdown.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    });
    let text: Vec<&str> = lines.collect();
    let text = text.join("\n");
    let targets = text.split("](").skip(1);
    targets
        .filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
        .collect()
}

/// Returns the anchors of the headings.
fn anchors(markdown: &str) -> Vec<String> {
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let letters = words
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        letters.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

#[test]
fn every_relative_link_has_a_target() {
    let documents = documents();
    assert!(documents.len() > 30);
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            let location = format!("{}: {link}", document.display());
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                document.clone()
            } else {
                document.parent().unwrap().join(file)
            };
            assert!(target.exists(), "{location}");
            if !anchor.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                assert!(
                    anchors(&text).iter().any(|known| known == anchor),
                    "{location}: no such heading"
                );
            }
        }
    }
}

/// Returns whether a test exists. It is named by its path below `tests/suite/`, one of a crate
/// after the name of the crate.
fn is_test(name: &str) -> bool {
    let parts: Vec<&str> = name.split("::").collect();
    let Some((test, file)) = parts.split_last().filter(|(_, file)| file.len() > 1) else {
        return false;
    };
    let modules = [
        format!("tests/suite/{}", file.join("/")),
        format!("crates/{}/tests/suite/{}", file[0], file[1..].join("/")),
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = modules
        .iter()
        .flat_map(|module| [format!("{module}.rs"), format!("{module}/mod.rs")]);
    let mut sources = files.filter_map(|file| fs::read_to_string(root.join(file)).ok());
    sources.any(|source| source.contains(&format!("fn {test}(")))
}

#[test]
fn every_test_that_a_document_names_exists() {
    assert!(is_test("documents::links::every_test_that_a_document_names_exists"));
    assert!(!is_test("documents::links::no_such_test") && !is_test("documents::nowhere::is_test"));
    let mut named = 0;
    for page in pages() {
        // A path that begins with a capital is one of a type.
        let is_named = |span: &&String| span.contains("::") && span.starts_with(|c: char| c.is_ascii_lowercase());
        for span in code_spans(&read(&page)).iter().filter(is_named) {
            assert!(is_test(span), "{page}: there is no test {span}");
            named += 1;
        }
    }
    assert!(named >= 80, "{named}");
}

/// Where the checks of the fault suite and the tests of the sandbox stand, as a page of `docs/`
/// links them.
const OTHER_SUITES: [&str; 2] = ["](../examples/faults/", "](../tests/escape/"];

#[test]
fn every_promise_names_its_test() {
    let mut shown = 0;
    for page in ["README.md", "docs/guarantees.md"] {
        let text = read(page);
        let mut column = None;
        for line in text.lines() {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            if !line.starts_with('|') {
                column = None;
            } else if let Some(at) = cells.iter().position(|cell| ["shown by", "test"].contains(cell)) {
                column = Some(at);
            } else if let Some(at) = column.filter(|_| !line.starts_with("|-")) {
                let is_shown = spans_of(cells[at]).any(|span| is_test(&span))
                    || OTHER_SUITES.iter().any(|suite| cells[at].contains(suite));
                assert!(is_shown, "{page}: nothing shows {line}");
                shown += 1;
            } else {
                let is_promise = cells[0] == "promise";
                assert!(
                    !is_promise,
                    "{page}: a table of promises says nothing of what shows them"
                );
            }
        }
    }
    assert!(shown > 60, "{shown}");
}
