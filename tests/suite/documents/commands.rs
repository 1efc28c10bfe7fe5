//! Asks the built binary for help on every command that a document names: the command and its flags
//! must exist.

use std::collections::BTreeSet;
use std::process::Command;

use super::blocks::{blocks, code_spans, pages, read};

const NAME: &str = "agent-runtime";

fn help(words: &[&str]) -> Option<String> {
    let asked = Command::new(env!("CARGO_BIN_EXE_agent-runtime"))
        .args(words)
        .arg("--help")
        .env_clear()
        .output()
        .unwrap();
    asked.status.success().then(|| String::from_utf8(asked.stdout).unwrap())
}

#[test]
fn every_command_that_a_document_names_exists() {
    let mut named = BTreeSet::new();
    for page in pages().into_iter().chain(["CHANGELOG.md".to_owned()]) {
        let text = read(&page);
        let commands = blocks(&text).into_iter().filter(|block| block.language == "sh");
        let lines = commands.flat_map(|block| block.text.lines().map(str::to_owned).collect::<Vec<_>>());
        for line in code_spans(&text).into_iter().chain(lines) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some((&NAME, words)) = words.split_first() else {
                continue;
            };
            let is_name =
                |word: &&&str| word.bytes().all(|c| c.is_ascii_lowercase() || c == b'-') && !word.starts_with('-');
            let names: Vec<&str> = words.iter().take(2).take_while(is_name).copied().collect();
            let help = help(&names).unwrap_or_else(|| panic!("{page}: {line}: no such command"));
            let flags = words.iter().map(|word| word.trim_matches(['[', ']']));
            for flag in flags.filter(|word| word.starts_with("--")) {
                assert!(help.contains(flag), "{page}: {line}: no flag {flag}");
            }
            named.insert(names.join(" "));
        }
    }
    assert!(named.len() >= 8, "{named:?}");
}
