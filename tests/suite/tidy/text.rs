//! The text that people read: its width and its words. CONTRIBUTING.md has both rules.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use super::{rust_files, sources, test_folders};

/// The most characters of a line of text. `rustfmt.toml` has the width of code.
const TEXT_WIDTH: usize = 100;

/// Words that stand for a term of the field, and what to write in their place.
const PRIVATE_WORDS: &[(&str, &str)] = &[
    ("farewell", "shut down, drain"),
    ("farewells", "shut down, drain"),
    ("for want of", "without, because there is no"),
    ("give way", "interrupt"),
    ("gives way", "interrupt"),
    ("last words", "shut down, drain"),
    ("reins", "control handle"),
    ("sight", "read, observe, poll, check"),
    ("sights", "read, observe, poll, check"),
    ("thereof", "of it"),
    ("turn away", "reject, refuse"),
    ("turned away", "rejected, refused"),
    ("turns away", "rejects, refuses"),
    ("until then", "name the time or the event"),
    ("whatever", "say what it depends on"),
    ("whoever", "name who does it"),
];

/// Words of names that stand for a term of the field, and what to write in their place.
const PRIVATE_NAMES: &[(&str, &str)] = &[
    ("farewell", "shutdown, drain"),
    ("hear", "receive"),
    ("heard", "received"),
    ("kept", "retained, stored"),
    ("looks", "reads, checks"),
    ("place", "slot, position, pointer, host"),
    ("places", "slots, positions, pointers, hosts"),
    ("reins", "control"),
    ("say", "send, report, write"),
    ("sight", "read, observation"),
    ("tell", "emit, send, report"),
    ("tells", "emits, sends, reports"),
    ("told", "emitted, sent, reported"),
    ("whoever", "holder, caller, reader"),
];

/// A page that shows words that are not to be used, between these lines.
const BAD_EXAMPLES: (&str, Range<&str>) = ("CONTRIBUTING.md", "## Language".."## Style");

#[test]
fn text_wraps_at_100_columns() {
    let mut faults = Vec::new();
    for (path, number, line) in prose() {
        let width = line.chars().count();
        if width > TEXT_WIDTH {
            faults.push(format!("{}:{number}: {width} columns", path.display()));
        }
    }
    assert!(
        faults.is_empty(),
        "text is wider than {TEXT_WIDTH} columns:\n{}",
        faults.join("\n")
    );
}

#[test]
fn text_uses_the_terms_of_the_field() {
    let mut faults = Vec::new();
    for (path, number, line) in prose() {
        let words = words(&line).join(" ");
        for (word, instead) in PRIVATE_WORDS {
            if format!(" {words} ").contains(&format!(" {word} ")) {
                faults.push(format!("{}:{number}: `{word}` is: {instead}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "private words:\n{}", faults.join("\n"));
}

#[test]
fn names_use_the_terms_of_the_field() {
    let mut faults = Vec::new();
    for file in code_files() {
        let text = fs::read_to_string(&file).unwrap();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !is_comment(line)) {
            for (word, instead) in PRIVATE_NAMES {
                if defined_name(line).is_some_and(|name| words(name).iter().any(|part| part == word)) {
                    let number = index + 1;
                    faults.push(format!("{}:{number}: `{word}` is: {instead}", file.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "private words in names:\n{}", faults.join("\n"));
}

/// Each line of comments and of pages, with its file and its number. Tables, addresses and examples
/// are as wide as they must be.
fn prose() -> Vec<(PathBuf, usize, String)> {
    let mut lines = Vec::new();
    for file in code_files() {
        let text = fs::read_to_string(&file).unwrap();
        let mut is_example = false;
        for (index, line) in text.lines().enumerate().filter(|(_, line)| is_comment(line)) {
            if is_prose(line.trim_start().trim_start_matches(['/', '!', ' ']), &mut is_example) {
                lines.push((file.clone(), index + 1, line.to_owned()));
            }
        }
    }
    for file in pages() {
        let text = fs::read_to_string(&file).unwrap();
        let (mut is_example, mut is_bad_example) = (false, false);
        for (index, line) in text.lines().enumerate() {
            if file.ends_with(BAD_EXAMPLES.0) {
                is_bad_example = (is_bad_example || line == BAD_EXAMPLES.1.start) && line != BAD_EXAMPLES.1.end;
            }
            if is_prose(line, &mut is_example) && !is_bad_example {
                lines.push((file.clone(), index + 1, line.to_owned()));
            }
        }
    }
    lines
}

/// Returns whether a line is prose. It is no prose between two fences.
fn is_prose(line: &str, is_example: &mut bool) -> bool {
    if line.starts_with("```") {
        *is_example = !*is_example;
    }
    let is_address = line.starts_with('[') && !line.contains(' ');
    !*is_example && !is_address && !line.starts_with('|')
}

fn code_files() -> Vec<PathBuf> {
    let roots = ["benches", "examples", "fuzz/fuzz_targets"].map(PathBuf::from);
    let roots = sources().into_iter().chain(test_folders()).chain(roots);
    let files = roots.flat_map(|root| rust_files(&root)).chain(["build.rs".into()]);
    // The words themselves stand here.
    files.filter(|file| !file.ends_with("tidy/text.rs")).collect()
}

/// The pages of the repository's root and of `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in [".", "docs"] {
        let entries = fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages.sort();
    pages
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// The name that a line of code defines.
fn defined_name(line: &str) -> Option<&str> {
    let kinds = [
        "fn ", "struct ", "enum ", "trait ", "type ", "mod ", "const ", "static ", "let ",
    ];
    let code = line.trim_start();
    let (_, name) = kinds.iter().find_map(|kind| {
        let at = code.find(kind)?;
        let is_start = at == 0 || code[..at].ends_with(' ');
        is_start.then(|| code.split_at(at + kind.len()))
    })?;
    Some(super::identifier(name.trim_start_matches("mut ")))
}

/// The words of a text or of a name, in lower case.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_lower = false;
    for character in text.chars() {
        let begins = character.is_uppercase() && is_lower;
        if begins || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if character.is_alphanumeric() {
            words.last_mut().unwrap().extend(character.to_lowercase());
        }
        is_lower = character.is_lowercase() || character.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}
