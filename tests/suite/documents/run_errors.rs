//! The codes of errors that end a run stand in one table of the code, from which docs/problems.md
//! is generated.

use std::fs;
use std::path::Path;

/// Where errors of runs are made. No other text in these files has the form of a code.
const SOURCES: [&str; 5] = [
    "src/run/work/failure.rs",
    "crates/agent/src/ports/model.rs",
    "crates/agent/src/hooks/stack.rs",
    "crates/agent/src/journal/recorder.rs",
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

#[test]
fn no_code_is_written_outside_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source: String = SOURCES.iter().map(|path| sources(&root.join(path))).collect();
    let is_code_line = |line: &&str| !["//", "#["].iter().any(|begin| line.trim_start().starts_with(begin));
    let lines = source.lines().filter(is_code_line);
    let texts = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
    // Errors of tools have a table of their own, in docs/agents.md.
    let codes: Vec<_> = texts
        .filter(|text| is_code(text) && !text.starts_with("tool_"))
        .collect();
    assert_eq!(codes, [""; 0]);
}
