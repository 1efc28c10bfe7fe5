//! One file of a patch in the unified format: its names, the lines that git adds, and its hunks.

use super::header::{read_name, unquoted, without_prefixes};
use super::model::{FileChange, FilePatch, Hunk, LineKind, PatchError};

/// The beginnings of lines without a meaning for the patch.
const IGNORED: &[&str] = &[
    "index ",
    "similarity index ",
    "dissimilarity index ",
    "old mode ",
    "Index: ",
    "====",
    "From ",
    "diff ",
    "Only in ",
];
/// Lines after which a patch has ended: the signature of a mail, and the fence of a code block.
const ENDS: &[&str] = &["--", "```"];

/// A file of a patch that is being read.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// The line of the patch that the file begins with; 0 if none has begun.
    begin: usize,
    /// The names behind `diff --git`.
    git_names: Option<String>,
    /// The names behind `---` and `+++`; `None` for `/dev/null`.
    names: Option<(Option<String>, Option<String>)>,
    renamed_from: Option<String>,
    renamed_to: Option<String>,
    is_new: bool,
    is_deleted: bool,
    is_executable: Option<bool>,
    hunks: Vec<Hunk>,
    /// Whether the lines after it are no part of the patch.
    has_ended: bool,
}

impl Section {
    /// Begins a file with a line `diff --git`.
    pub(super) fn begin(&mut self, number: usize, git_names: &str) {
        self.begin = number;
        self.git_names = Some(git_names.to_owned());
    }

    /// Sets the names behind `---` and `+++`.
    pub(super) fn set_names(&mut self, number: usize, old: &str, new: &str) -> Result<(), PatchError> {
        if self.begin == 0 {
            self.begin = number;
        }
        self.has_ended = false;
        let names = (read_name(old, number)?, read_name(new, number + 1)?);
        self.names = Some(without_prefixes(names.0, names.1));
        Ok(())
    }

    /// Returns whether the file has names behind `---` and `+++`.
    pub(super) fn has_names(&self) -> bool {
        self.names.is_some() && !self.has_ended
    }

    /// Adds a hunk.
    pub(super) fn push_hunk(&mut self, hunk: Hunk) {
        self.hunks.push(hunk);
    }

    /// Reads a line that is neither a name nor part of a hunk.
    pub(super) fn read_line(&mut self, number: usize, line: &str) -> Result<(), PatchError> {
        if self.begin == 0 || self.has_ended || line.is_empty() {
            return Ok(());
        }
        let error = |message: &str| Err(PatchError::at(number, message));
        let value = |begin: &str| line.strip_prefix(begin).map(str::trim);
        if let Some(mode) = value("new file mode ").or_else(|| value("new mode ")) {
            match mode {
                "100755" => self.is_executable = Some(true),
                "100644" => self.is_executable = Some(false),
                "120000" => return error("symlinks can't be patched"),
                _ => return error("this mode of a file is not supported"),
            }
            self.is_new |= line.starts_with("new file");
        } else if line.starts_with("deleted file mode ") {
            self.is_deleted = true;
        } else if let Some(name) = value("rename from ") {
            self.renamed_from = Some(unquoted(name, number)?);
        } else if let Some(name) = value("rename to ") {
            self.renamed_to = Some(unquoted(name, number)?);
        } else if line.starts_with("copy from ") || line.starts_with("copy to ") {
            return error("copies are not supported; add the file with its whole content");
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return error("binary files can't be patched");
        } else if ENDS.contains(&line) {
            self.has_ended = true;
        } else if !IGNORED.iter().any(|begin| line.starts_with(begin)) {
            return error("this line is in no hunk; each line of a hunk begins with a space, `-` or `+`");
        }
        Ok(())
    }

    /// Adds the file to the list, if one has begun, and makes the section empty.
    pub(super) fn end(&mut self, files: &mut Vec<FilePatch>) -> Result<(), PatchError> {
        let section = std::mem::take(self);
        if section.begin > 0 {
            files.push(section.into_file()?);
        }
        Ok(())
    }

    fn into_file(self) -> Result<FilePatch, PatchError> {
        let error = |message: String| PatchError::at(self.begin, message);
        let renamed = self.renamed_from.zip(self.renamed_to);
        let is_renamed = renamed.is_some();
        let names = match (renamed, self.names) {
            (Some((from, to)), _) => (Some(from), Some(to)),
            (None, Some(names)) => names,
            (None, None) => {
                let name = git_name(&self.git_names.unwrap_or_default(), self.begin)?;
                let old = name.clone().filter(|_| !self.is_new);
                (old, name.filter(|_| !self.is_deleted))
            }
        };
        let (path, change) = match names {
            (None, None) => return Err(error("both names of the file are missing or unclear".to_owned())),
            (None, Some(path)) => {
                let content =
                    content(&self.hunks).ok_or_else(|| error("a new file has only lines with `+`".to_owned()))?;
                let is_executable = self.is_executable.unwrap_or_default();
                (path, FileChange::Add { content, is_executable })
            }
            (Some(path), None) => (path, FileChange::Delete { hunks: self.hunks }),
            (Some(old), Some(new)) if old != new && !is_renamed => {
                let message = format!("{old} and {new} are different files; write `rename from` and `rename to`");
                return Err(error(message));
            }
            (Some(path), Some(_)) if self.hunks.is_empty() && self.is_executable.is_none() && !is_renamed => {
                return Err(error(format!("there are no changes of {path}")));
            }
            (Some(path), Some(new)) => {
                let change = FileChange::Update {
                    hunks: self.hunks,
                    new_path: is_renamed.then_some(new),
                    is_executable: self.is_executable,
                };
                (path, change)
            }
        };
        Ok(FilePatch { path, change })
    }
}

/// Returns the content of a new file; `None` if the hunks have other lines than added ones.
fn content(hunks: &[Hunk]) -> Option<String> {
    let mut content = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if line.kind != LineKind::Added {
            return None;
        }
        content.push_str(&line.text);
        if line.has_end {
            content.push('\n');
        }
    }
    Some(content)
}

/// Returns the name in `a/NAME b/NAME`; `None` if both differ.
fn git_name(names: &str, number: usize) -> Result<Option<String>, PatchError> {
    let middle = names.len() / 2;
    let halves = names.get(..middle).zip(names.get(middle + 1..));
    let Some((old, new)) = halves.filter(|_| names.as_bytes().get(middle) == Some(&b' ')) else {
        return Ok(None);
    };
    let names = [old, new].map(|name| unquoted(name, number));
    let [old, new] = names;
    let (old, new) = without_prefixes(Some(old?), Some(new?));
    Ok(old.filter(|old| new.as_ref() == Some(old)))
}
