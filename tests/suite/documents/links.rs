//! Follows what the documents point to: files, headings, and the tests that they name.

use std::fs;
use std::path::{Path, PathBuf};

use super::blocks::{code_spans, read};

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/problems"] {
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

/// What a heading is addressed by.
fn anchors(markdown: &str) -> Vec<String> {
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

#[test]
fn every_relative_link_leads_somewhere() {
    let documents = documents();
    assert!(documents.len() > 40);
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            let place = format!("{}: {link}", document.display());
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                document.clone()
            } else {
                document.parent().unwrap().join(file)
            };
            assert!(target.exists(), "{place}");
            if !anchor.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                assert!(
                    anchors(&text).iter().any(|known| known == anchor),
                    "{place}: no such heading"
                );
            }
        }
    }
}

#[test]
fn every_test_that_a_document_names_exists() {
    let mut named = 0;
    let pages = ["README.md", "docs/guarantees.md"].map(|page| code_spans(&read(page)));
    for span in pages.into_iter().flatten() {
        let parts: Vec<&str> = span.split("::").collect();
        let Some((test, file)) = parts.split_last().filter(|(_, file)| file.len() > 1) else {
            continue;
        };
        let source = read(&format!("tests/suite/{}.rs", file.join("/")));
        assert!(source.contains(&format!("fn {test}")), "there is no test {span}");
        named += 1;
    }
    assert!(named >= 16, "{named}");
}
