//! Compares docs/problems/run-errors.md with the table of the code: each error that can end a run
//! has its row, and each row its error.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use agent::RunErrorCode;

use super::blocks::{read, spans_of, tables};

const PAGE: &str = "docs/problems/run-errors.md";
/// Where errors of runs are made. No other text in these files has the form of a code.
const SOURCES: [&str; 5] = [
    "src/run/failure.rs",
    "crates/agent/src/ports/model.rs",
    "crates/agent/src/hooks/stack.rs",
    "crates/agent/src/recorder.rs",
    "crates/agent/src/drivers",
];

/// The sources of a file, or of all files of a folder, without their tests.
fn sources(path: &Path) -> String {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        return entries.map(|entry| sources(&entry.unwrap().path())).collect();
    }
    let source = fs::read_to_string(path).unwrap();
    let (code, _) = source.split_once("#[cfg(test)]").unwrap_or((&source, ""));
    code.to_owned()
}

fn is_code(text: &str) -> bool {
    text.contains('_') && text.bytes().all(|c| c.is_ascii_lowercase() || c == b'_')
}

/// Returns a text without its links.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let first = parts.next().unwrap().replace('[', "");
    let rest = parts.map(|part| part.split_once(')').unwrap().1.replace('[', ""));
    std::iter::once(first).chain(rest).collect()
}

#[test]
fn the_page_on_errors_of_runs_has_the_codes_of_the_code() {
    let (_, table) = tables(&read(PAGE))
        .into_iter()
        .find(|(mark, _)| mark == "run errors")
        .unwrap();
    let shown: BTreeMap<String, String> = table
        .iter()
        .flat_map(|row| {
            spans_of(&row[0])
                .map(|code| (code, without_links(&row[2])))
                .collect::<Vec<_>>()
        })
        .collect();
    let codes = RunErrorCode::ALL.iter();
    let made: BTreeMap<String, String> = codes
        .map(|code| (code.as_str().to_owned(), code.meaning().to_owned()))
        .collect();
    assert_eq!(shown, made);
    assert!(shown.len() > 25, "{shown:?}");
    for row in &table {
        let is_phase = |phase: &str| ["load", "execute", "commit", "any"].contains(&phase);
        assert!(row[1].split(", ").all(is_phase), "{row:?}");
    }
}

#[test]
fn no_code_is_written_outside_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source: String = SOURCES.iter().map(|path| sources(&root.join(path))).collect();
    let is_code_line = |line: &&str| !["//", "#["].iter().any(|begin| line.trim_start().starts_with(begin));
    let lines = source.lines().filter(is_code_line);
    let texts = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
    // Errors of tools have a table of their own, in docs/api.md.
    let codes: Vec<_> = texts
        .filter(|text| is_code(text) && !text.starts_with("tool_"))
        .collect();
    assert_eq!(codes, [""; 0]);
}
