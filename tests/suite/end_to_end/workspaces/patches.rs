//! Patches for the files of `t/`, in both formats of `apply_patch`, and what they do.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use proptest::sample::Index;

use super::operations::Files;

/// The change of a file by a patch.
#[derive(Debug, Clone)]
pub(in crate::end_to_end) enum Change {
    /// Adds it with these lines. Impossible if it exists.
    Add(String),
    /// Deletes it. This and all other changes are impossible if it does not exist.
    Delete,
    /// Gives it another name. Impossible if a file has this name.
    Rename(&'static str),
    /// Replaces one of its lines by several.
    Replace(Index, String),
    /// Adds lines at its end.
    Append(String),
}

impl Change {
    /// Returns the files after it, or `None` if it is impossible.
    pub(super) fn apply(&self, files: &Files, name: &str, is_unified: bool) -> Option<Files> {
        let mut after = files.clone();
        if let Self::Add(lines) = self {
            return match after.insert(name.to_owned(), format!("{lines}\n")) {
                None => Some(after),
                Some(_) => None,
            };
        }
        let text = after.remove(name)?;
        let (name, text) = match self {
            Self::Delete => return Some(after),
            Self::Rename(new) if after.contains_key(*new) => return None,
            Self::Rename(new) => (*new, text),
            _ => (name, self.changed(&text, is_unified)),
        };
        after.insert(name.to_owned(), text);
        Some(after)
    }

    /// Returns the text of a file after a change of its lines.
    fn changed(&self, text: &str, is_unified: bool) -> String {
        let mut lines: Vec<&str> = text.lines().collect();
        let mut has_end = true;
        match self {
            Self::Replace(index, new) if !lines.is_empty() => {
                let index = index.index(lines.len());
                // The other format can't say that a new line has no end.
                has_end = text.ends_with('\n') || (!is_unified && index + 1 == lines.len());
                lines[index] = new;
            }
            Self::Replace(_, new) | Self::Append(new) => lines.push(new),
            Self::Add(_) | Self::Delete | Self::Rename(_) => unreachable!("it changes no line"),
        }
        lines.join("\n") + if has_end { "\n" } else { "" }
    }
}

/// Writes a patch that does these changes, one after the other. A change of a file that does not
/// exist is written as one of a file with the line `0`.
pub(super) fn patch(files: Files, changes: &[(&'static str, Change)], is_unified: bool) -> String {
    let (mut files, mut patch) = (files, String::new());
    for (name, change) in changes {
        let before = files.get(*name).map_or("0\n", String::as_str);
        if is_unified {
            push_unified(&mut patch, name, before, change);
        } else {
            push_section(&mut patch, name, before, change);
        }
        if let Some(after) = change.apply(&files, name, is_unified) {
            files = after;
        }
    }
    if is_unified {
        return patch;
    }
    format!("*** Begin Patch\n{patch}*** End Patch")
}

/// Adds a section in the format that begins with `*** Begin Patch`.
fn push_section(patch: &mut String, name: &str, before: &str, change: &Change) {
    let section = match change {
        Change::Add(lines) => format!("*** Add File: t/{name}\n{}", prefixed("+", lines)),
        Change::Delete => format!("*** Delete File: t/{name}\n"),
        Change::Rename(new) => format!("*** Update File: t/{name}\n*** Move to: t/{new}\n"),
        Change::Replace(index, new) if !before.is_empty() => {
            let lines: Vec<&str> = before.lines().collect();
            let index = index.index(lines.len());
            // All lines of the file are in the hunk, so that its position is certain.
            let (above, below) = (lines[..index].join("\n"), lines[index + 1..].join("\n"));
            let hunk = [(" ", above.as_str()), ("-", lines[index]), ("+", new), (" ", &below)];
            let is_there = [index > 0, true, true, index + 1 < lines.len()];
            let hunk = hunk.iter().zip(is_there).filter(|(_, is_there)| *is_there);
            let hunk: String = hunk.map(|((sign, lines), _)| prefixed(sign, lines)).collect();
            format!("*** Update File: t/{name}\n@@\n{hunk}")
        }
        Change::Replace(_, new) | Change::Append(new) => {
            let old = before.strip_suffix('\n').unwrap_or(before);
            let old = if before.is_empty() {
                String::new()
            } else {
                prefixed(" ", old)
            };
            format!("*** Update File: t/{name}\n@@\n{old}{}", prefixed("+", new))
        }
    };
    patch.push_str(&section);
}

/// Puts a sign before each line.
fn prefixed(sign: &str, lines: &str) -> String {
    let lines = lines.split('\n').flat_map(|line| [sign, line, "\n"]);
    lines.collect()
}

/// Adds what `git diff` would print, with the hunks of `diff -u`.
fn push_unified(patch: &mut String, name: &str, before: &str, change: &Change) {
    let (old, new) = (format!("a/t/{name}"), format!("b/t/{name}"));
    let hunks = |before: &str, after: &str, labels: [&str; 2]| {
        let folder = tempfile::tempdir().unwrap();
        let paths = [("before", before), ("after", after)].map(|(name, text)| {
            fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        });
        let arguments = ["-u", "--label", labels[0], "--label", labels[1]];
        let output = Command::new("diff").args(arguments).args(paths).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    match change {
        Change::Add(lines) => {
            let hunks = hunks("", &format!("{lines}\n"), ["/dev/null", &new]);
            write!(patch, "diff --git {old} {new}\nnew file mode 100644\n{hunks}")
        }
        Change::Delete => {
            let hunks = hunks(before, "", [&old, "/dev/null"]);
            write!(patch, "diff --git {old} {new}\ndeleted file mode 100644\n{hunks}")
        }
        Change::Rename(to) => {
            let names = format!("rename from t/{name}\nrename to t/{to}\n");
            write!(patch, "diff --git {old} b/t/{to}\nsimilarity index 100%\n{names}")
        }
        Change::Replace(..) | Change::Append(_) => {
            let hunks = hunks(before, &change.changed(before, true), [&old, &new]);
            write!(patch, "diff --git {old} {new}\n{hunks}")
        }
    }
    .unwrap();
}
