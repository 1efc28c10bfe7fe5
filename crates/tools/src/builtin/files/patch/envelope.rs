//! Reads patches in the format that models of OpenAI are trained on: `*** Begin Patch`, then
//! `*** Add File:`, `*** Update File:` and `*** Delete File:`, then `*** End Patch`.

use super::header::read_header;
use super::model::{FileChange, FilePatch, Hunk, HunkLine, LineKind, PatchError};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Returns whether a patch has this format.
pub(super) fn is_envelope(patch: &str) -> bool {
    patch.lines().any(|line| line.trim_end() == BEGIN)
}

/// Reads a patch. Ignores lines before its beginning, such as the line of a shell's heredoc.
pub(super) fn read_envelope(patch: &str) -> Result<Vec<FilePatch>, PatchError> {
    let mut reader = Reader {
        lines: patch.split('\n').collect(),
        next: 0,
    };
    while reader.peek().is_some_and(|line| line.trim_end() != BEGIN) {
        reader.next += 1;
    }
    reader.next += 1;
    let mut files = Vec::new();
    loop {
        let number = reader.next + 1;
        let Some(line) = reader.take().map(str::trim_end) else {
            let message = format!("the patch is cut: it has no line {END:?}");
            return Err(PatchError(message));
        };
        if line == END {
            return Ok(files);
        }
        if line.is_empty() {
            continue;
        }
        files.push(reader.read_file(line, number)?);
    }
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    /// The index of the next line.
    next: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    fn take(&mut self) -> Option<&'a str> {
        let line = self.peek();
        self.next += 1;
        line
    }

    /// Takes the next line if it begins like a line of the envelope. Returns the rest of it.
    fn take_if(&mut self, begin: &str) -> Option<&'a str> {
        let rest = self.peek()?.strip_prefix(begin)?;
        self.next += 1;
        Some(rest.trim())
    }

    fn read_file(&mut self, line: &str, number: usize) -> Result<FilePatch, PatchError> {
        let named = |path: &str| match path.trim() {
            "" => Err(PatchError::at(number, "the name of the file is missing")),
            path => Ok(path.to_owned()),
        };
        if let Some(path) = line.strip_prefix(ADD) {
            let (path, content) = (named(path)?, self.read_content()?);
            let is_executable = false;
            let change = FileChange::Add { content, is_executable };
            return Ok(FilePatch { path, change });
        }
        if let Some(path) = line.strip_prefix(DELETE) {
            let change = FileChange::Delete { hunks: Vec::new() };
            return Ok(FilePatch {
                path: named(path)?,
                change,
            });
        }
        let Some(path) = line.strip_prefix(UPDATE) else {
            let message = format!("expected {ADD:?}, {UPDATE:?}, {DELETE:?} or {END:?}");
            return Err(PatchError::at(number, message));
        };
        let path = named(path)?;
        let new_path = self.take_if(MOVE).map(str::to_owned);
        let hunks = self.read_hunks()?;
        if hunks.is_empty() && new_path.is_none() {
            return Err(PatchError::at(number, format!("the update of {path} has no changes")));
        }
        let is_executable = None;
        let change = FileChange::Update {
            hunks,
            new_path,
            is_executable,
        };
        Ok(FilePatch { path, change })
    }

    fn read_content(&mut self) -> Result<String, PatchError> {
        let mut content = String::new();
        while let Some(line) = self.peek().filter(|line| !line.starts_with("*** ")) {
            self.next += 1;
            match line.strip_prefix('+') {
                Some(text) => {
                    content.push_str(text);
                    content.push('\n');
                }
                None if line.trim().is_empty() => (),
                None => return Err(PatchError::at(self.next, "each line of a new file begins with `+`")),
            }
        }
        Ok(content)
    }

    fn read_hunks(&mut self) -> Result<Vec<Hunk>, PatchError> {
        let mut hunks = Vec::new();
        let mut hunk = Hunk::default();
        while let Some(line) = self.peek() {
            let number = self.next + 1;
            if line.trim_end() == END_OF_FILE {
                hunk.is_at_end = true;
                push_hunk(&mut hunks, &mut hunk)?;
            } else if line.starts_with("*** ") {
                break;
            } else if line.starts_with("@@") {
                if !hunk.lines.is_empty() {
                    push_hunk(&mut hunks, &mut hunk)?;
                }
                let header = read_header(line.trim_end(), number)?;
                hunk.patch_line = number;
                hunk.start = header.start.or(hunk.start);
                hunk.anchors.extend(header.anchor);
            } else if let Some(line) = HunkLine::read(line) {
                if hunk.patch_line == 0 {
                    hunk.patch_line = number;
                }
                hunk.lines.push(line);
            } else {
                let message = "each line of a hunk begins with a space, `-` or `+`";
                return Err(PatchError::at(number, message));
            }
            self.next += 1;
        }
        push_hunk(&mut hunks, &mut hunk)?;
        Ok(hunks)
    }
}

/// Adds a hunk that has ended to the list, and begins the next. Empty lines at its end only
/// separate it from the next section.
fn push_hunk(hunks: &mut Vec<Hunk>, hunk: &mut Hunk) -> Result<(), PatchError> {
    let mut hunk = std::mem::take(hunk);
    let separates = |line: &HunkLine| line.kind == LineKind::Context && line.text.trim_end().is_empty();
    while hunk.lines.last().is_some_and(separates) {
        hunk.lines.pop();
    }
    if hunk.lines.is_empty() && hunk.anchors.is_empty() {
        return Ok(());
    }
    if !hunk.has_changes() {
        return Err(PatchError::at(
            hunk.patch_line,
            "the hunk changes nothing: it has no line with `-` or `+`",
        ));
    }
    hunks.push(hunk);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk_text(hunk: &Hunk) -> String {
        let line = |line: &HunkLine| {
            let sign = match line.kind {
                LineKind::Context => ' ',
                LineKind::Removed => '-',
                LineKind::Added => '+',
            };
            format!("{sign}{}", line.text)
        };
        hunk.lines.iter().map(line).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn all_operations_are_read() {
        let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: hello.txt\n+Hello\n+\n\
                     *** Update File: src/app.py\n*** Move to: src/main.py\n@@ class A\n@@ def greet():\n-print(\"Hi\")\n\
                     +print(\"Hello\")\n\n x\n\n@@\n+end\n*** End of File\n*** Delete File: old.txt\n*** End Patch\nEOF\n";
        let files = read_envelope(patch).unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["hello.txt", "src/app.py", "old.txt"]);
        let content = "Hello\n\n".to_owned();
        assert_eq!(
            files[0].change,
            FileChange::Add {
                content,
                is_executable: false
            }
        );
        assert_eq!(files[2].change, FileChange::Delete { hunks: Vec::new() });
        let FileChange::Update { hunks, new_path, .. } = &files[1].change else {
            panic!()
        };
        assert_eq!(new_path.as_deref(), Some("src/main.py"));
        assert_eq!(hunks[0].anchors, ["class A", "def greet():"]);
        assert_eq!(hunk_text(&hunks[0]), "-print(\"Hi\")|+print(\"Hello\")| | x");
        assert_eq!(
            (hunk_text(&hunks[1]).as_str(), hunks[1].is_at_end, hunks[1].patch_line),
            ("+end", true, 15)
        );
    }

    #[test]
    fn the_first_hunk_needs_no_header() {
        let files = read_envelope("*** Begin Patch\n*** Update File: a\n x\n-y\n*** End Patch").unwrap();
        let FileChange::Update { hunks, .. } = &files[0].change else {
            panic!()
        };
        assert_eq!(
            (hunks.len(), hunk_text(&hunks[0]).as_str(), hunks[0].patch_line),
            (1, " x|-y", 3)
        );
    }

    #[test]
    fn faults_are_errors_with_their_lines() {
        for case in [
            "*** Add File: a\nx\n*** End Patch => line 3 of the patch: each line of a new file",
            "*** Add File:\n+x\n*** End Patch => line 2 of the patch: the name of the file is missing",
            "*** Update File: a\n*** End Patch => line 2 of the patch: the update of a has no changes",
            "*** Update File: a\n@@\n x\n*** End Patch => line 3 of the patch: the hunk changes nothing",
            "*** Update File: a\n@@ def f\n*** End Patch => line 3 of the patch: the hunk changes nothing",
            "*** Update File: a\n@@\n x\n-y\nz\n*** End Patch => line 6 of the patch: each line of a hunk",
            "*** Rename File: a\n*** End Patch => line 2 of the patch: expected",
            "x\n*** End Patch => line 2 of the patch: expected",
            "*** Update File: a\n@@\n-y => the patch is cut",
        ] {
            let (body, error) = case.split_once(" => ").unwrap();
            let found = read_envelope(&format!("*** Begin Patch\n{body}")).unwrap_err().0;
            assert!(found.contains(error), "{body:?}: {found}");
        }
    }
}
