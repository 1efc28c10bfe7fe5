//! Operations of tools and commands on files, drawn at random, and what they do to a plain
//! directory.
//!
//! Commands work below `s/` and on the files of `t/`. The file tools work on `t/`, whose entries
//! are never anything but files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;
use test_support::environment::variable;
use values::json::Value;

use super::patches::{Change, patch};
use super::write;

/// The files of `t/`, by name.
pub(super) type Files = BTreeMap<String, String>;

/// An operation of a run on its files.
#[derive(Debug, Clone)]
pub(in crate::end_to_end) enum Operation {
    /// `write_file` writes a file of `t/`.
    Write { name: &'static str, text: String },
    /// `edit_file` edits a file of `t/`. It fails if there is no such file, or if the text is not
    /// in it.
    Edit { name: &'static str, edits: Vec<Edit> },
    /// `apply_patch` patches files of `t/`. It fails if one of the changes is impossible.
    Patch {
        is_unified: bool,
        changes: Vec<(&'static str, Change)>,
    },
    /// `shell` runs a command.
    Shell(String),
}

/// A replacement of `edit_file`.
#[derive(Debug, Clone)]
pub(in crate::end_to_end) struct Edit {
    old: String,
    new: String,
    all: bool,
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c"])
}

/// A few short lines of few kinds, so that drawn texts are often in drawn files.
fn lines(count: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec(0..4_u8, count).prop_map(|digits| {
        let digits: Vec<_> = digits.iter().map(u8::to_string).collect();
        digits.join("\n")
    })
}

/// The content of a file, with or without an end of its last line.
fn text() -> impl Strategy<Value = String> {
    (lines(1..7), prop::sample::select(vec!["", "\n"])).prop_map(|(lines, end)| lines + end)
}

fn edit() -> impl Strategy<Value = Edit> {
    (lines(1..3), lines(0..3), any::<bool>()).prop_map(|(old, new, all)| Edit { old, new, all })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => lines(1..4).prop_map(Change::Add),
        1 => Just(Change::Delete),
        1 => name().prop_map(Change::Rename),
        3 => (any::<Index>(), lines(2..4)).prop_map(|(line, text)| Change::Replace(line, text)),
        2 => lines(1..3).prop_map(Change::Append),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let path = move || prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"));
    let shell = prop_oneof![
        3 => (path(), any::<u16>()).prop_map(|(path, text)| format!("mkdir -p \"$(dirname s/{path})\" && echo {text} > s/{path}")),
        1 => (path(), any::<u16>()).prop_map(|(path, text)| format!("echo {text} >> s/{path}")),
        2 => path().prop_map(|path| format!("rm -rf s/{path}")),
        1 => path().prop_map(|path| format!("mkdir -p s/{path}")),
        1 => (path(), name()).prop_map(|(path, target)| format!("ln -s {target} s/{path}")),
        1 => (path(), path()).prop_map(|(from, to)| format!("mv s/{from} s/{to}")),
        1 => path().prop_map(|path| format!("[ ! -f s/{path} ] || chmod +x s/{path}")),
        1 => (name(), 0..4_u8).prop_map(|(name, text)| format!("echo {text} >> t/{name}")),
        1 => name().prop_map(|name| format!("rm -f t/{name}")),
        1 => Just("cp -r s s2 && rm -rf s && mv s2 s".to_owned()),
    ];
    let edits = prop::collection::vec(edit(), 1..3);
    let changes = prop::collection::vec((name(), change()), 1..3);
    prop_oneof![
        2 => (name(), text()).prop_map(|(name, text)| Operation::Write { name, text }),
        2 => (name(), edits).prop_map(|(name, edits)| Operation::Edit { name, edits }),
        2 => (any::<bool>(), changes).prop_map(|(is_unified, changes)| Operation::Patch { is_unified, changes }),
        5 => shell.prop_map(Operation::Shell),
    ]
}

/// Draws sequences of operations, the same ones in every run of the test.
pub(in crate::end_to_end) fn sequences(count: usize, length: usize) -> Vec<Vec<Operation>> {
    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(operation(), length..=length);
    let mut draw = || strategy.new_tree(&mut runner).unwrap().current();
    (0..count).map(|_| draw()).collect()
}

/// Returns how many sequences a test draws: so many, or as many as `PROPTEST_CASES` asks for.
pub(super) fn cases(least: usize) -> usize {
    let wanted = variable("PROPTEST_CASES").map(|cases| cases.parse().unwrap());
    wanted.unwrap_or(least).max(least)
}

impl Operation {
    /// The call that does it, in a run whose files are those of the directory.
    pub(in crate::end_to_end) fn call(&self, directory: &Path) -> (&'static str, Value) {
        match self {
            Self::Write { name, text } => write(&format!("t/{name}"), text),
            Self::Edit { name, edits } => {
                let edit = |edit: &Edit| json!({"old": edit.old, "new": edit.new, "all": edit.all});
                let edits: Vec<_> = edits.iter().map(edit).collect();
                ("edit_file", json!({"path": format!("t/{name}"), "edits": edits}))
            }
            Self::Patch { is_unified, changes } => {
                let patch = patch(files(directory), changes, *is_unified);
                ("apply_patch", json!({"patch": patch}))
            }
            Self::Shell(command) => ("shell", json!({"command": with_folders(command)})),
        }
    }

    /// Does it in a directory. Returns whether its call succeeds; `None` if its result says so in
    /// another way.
    pub(in crate::end_to_end) fn apply(&self, directory: &Path) -> Option<bool> {
        let before = files(directory);
        let after = match self {
            Self::Write { name, text } => {
                let mut after = before.clone();
                after.insert((*name).to_owned(), text.clone());
                Some(after)
            }
            Self::Edit { name, edits } => edited(&before, name, edits),
            Self::Patch { is_unified, changes } => {
                let mut each = changes.iter();
                each.try_fold(before.clone(), |files, (name, change)| {
                    change.apply(&files, name, *is_unified)
                })
            }
            Self::Shell(command) => {
                plain_shell(directory, &with_folders(command));
                return None;
            }
        };
        if let Some(after) = &after {
            replace(directory, &before, after);
        }
        Some(after.is_some())
    }
}

/// Operations need both folders. A session keeps them also if they are empty.
fn with_folders(command: &str) -> String {
    format!("mkdir -p s t; {command}")
}

/// Returns the files after all edits, or `None` if one of them is impossible.
fn edited(before: &Files, name: &str, edits: &[Edit]) -> Option<Files> {
    let mut text = before.get(name)?.clone();
    for Edit { old, new, all } in edits {
        let count = text.matches(old.as_str()).count();
        if old == new || count == 0 || (count > 1 && !all) {
            return None;
        }
        text = text.replace(old.as_str(), new);
    }
    let mut after = before.clone();
    after.insert(name.to_owned(), text);
    Some(after)
}

/// Reads the files of `t/`.
fn files(directory: &Path) -> Files {
    let entries = fs::read_dir(directory.join("t")).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    entries.map(read).collect()
}

/// Turns the files of `t/` into others.
fn replace(directory: &Path, before: &Files, after: &Files) {
    let folder = directory.join("t");
    fs::create_dir_all(&folder).unwrap();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        fs::remove_file(folder.join(name)).unwrap();
    }
    for (name, text) in after.iter().filter(|(name, text)| before.get(*name) != Some(*text)) {
        fs::write(folder.join(name), text).unwrap();
    }
}

/// Runs a command without any sandbox, and returns what it prints.
pub(crate) fn plain_shell(directory: &Path, command: &str) -> String {
    let output = Command::new("/bin/bash")
        .args(["-c", command])
        .current_dir(directory)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}
