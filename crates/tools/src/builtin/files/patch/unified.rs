//! Reads patches in the unified format, as `diff -u` and `git diff` write them.
//!
//! Models often write wrong numbers of lines. So a hunk ends where its lines end, and the numbers
//! decide only if the lines are ambiguous.

use super::header::read_header;
use super::model::{FilePatch, Hunk, HunkLine, LineKind, PatchError};
use super::section::Section;

/// Returns whether a patch has this format.
pub(super) fn is_unified(patch: &str) -> bool {
    let mut before = "";
    patch.lines().any(|line| {
        let is_header = before.starts_with("--- ") && line.starts_with("+++ ");
        before = line;
        is_header || line.starts_with("diff --git ")
    })
}

/// Reads a patch. Ignores lines before the first file, such as the message of a commit.
pub(super) fn read_unified(patch: &str) -> Result<Vec<FilePatch>, PatchError> {
    let mut reader = Reader {
        lines: patch.strip_suffix('\n').unwrap_or(patch).split('\n').collect(),
        next: 0,
    };
    let mut files = Vec::new();
    let mut file = Section::default();
    while let Some(line) = reader.peek() {
        let (number, header) = (reader.next + 1, line.trim_end());
        if let Some(names) = header.strip_prefix("diff --git ") {
            file.end(&mut files)?;
            file.begin(number, names);
        } else if let Some((old, new)) = reader.names() {
            if file.has_names() {
                file.end(&mut files)?;
            }
            file.set_names(number, old, new)?;
            reader.next += 1;
        } else if header.starts_with("@@") && file.has_names() {
            file.push_hunk(reader.read_hunk(header)?);
            continue;
        } else {
            file.read_line(number, header)?;
        }
        reader.next += 1;
    }
    file.end(&mut files)?;
    Ok(files)
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

    /// Returns the names of a file, if they come next.
    fn names(&self) -> Option<(&'a str, &'a str)> {
        let old = self.peek()?.strip_prefix("--- ")?;
        let new = self.lines.get(self.next + 1)?.strip_prefix("+++ ")?;
        Some((old, new))
    }

    /// Returns whether the names of a file end a hunk that has that many lines left by its numbers.
    /// A removed line `-- a` and an added line `++ b` look like names, too.
    fn has_next_file(&self, old: usize, new: usize) -> bool {
        let after = self.lines.get(self.next + 2);
        let is_followed = after.is_none_or(|after| after.starts_with("@@"));
        self.names().is_some() && is_followed && (old, new) != (1, 1)
    }

    fn read_hunk(&mut self, header: &str) -> Result<Hunk, PatchError> {
        let patch_line = self.next + 1;
        let header = read_header(header, patch_line)?;
        self.next += 1;
        let mut hunk = Hunk {
            patch_line,
            start: header.start,
            anchors: header.anchor.into_iter().collect(),
            ..Hunk::default()
        };
        let (mut old, mut new) = header.counts.unwrap_or_default();
        while let Some(text) = self.peek() {
            if text.starts_with('\\') {
                if let Some(last) = hunk.lines.last_mut() {
                    last.has_end = false;
                }
                self.next += 1;
                continue;
            }
            let is_inside = old > 0 || new > 0;
            // Beyond the numbers, an empty line separates, and `-- ` begins a signature.
            let separates = text.trim_end().is_empty() || text.trim_end() == "--";
            if self.has_next_file(old, new) || !is_inside && separates {
                break;
            }
            let Some(line) = HunkLine::read(text) else {
                let begins_next = ["@@", "diff ", "```", "Index: "]
                    .iter()
                    .any(|begin| text.starts_with(begin));
                if is_inside && !begins_next {
                    let message = "each line of a hunk begins with a space, `-` or `+`";
                    return Err(PatchError::at(self.next + 1, message));
                }
                break;
            };
            match line.kind {
                LineKind::Context => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
                LineKind::Removed => old = old.saturating_sub(1),
                LineKind::Added => new = new.saturating_sub(1),
            }
            hunk.lines.push(line);
            self.next += 1;
        }
        if !hunk.has_changes() {
            return Err(PatchError::at(
                patch_line,
                "the hunk changes nothing: it has no line with `-` or `+`",
            ));
        }
        Ok(hunk)
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::FileChange;
    use super::*;

    fn read(patch: &str) -> Vec<(String, FileChange)> {
        let files = read_unified(patch).unwrap();
        files.into_iter().map(|file| (file.path, file.change)).collect()
    }

    fn hunks_of(change: &FileChange) -> &[Hunk] {
        match change {
            FileChange::Update { hunks, .. } | FileChange::Delete { hunks } => hunks,
            FileChange::Add { .. } => &[],
        }
    }

    #[test]
    fn several_files_are_read() {
        let patch = "From 1234\n\nA message.\n---\n a | 2 +-\n\n\
                     diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@ f\n x\n-y\n+z\n@@ -9 +9 @@\n-p\n+q\n\
                     diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+1\n+2\n\\ No newline at end of file\n\
                     diff --git a/o b/o\ndeleted file mode 100644\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\
                     diff --git a/r b/s\nsimilarity index 100%\nrename from r\nrename to s\n\
                     diff --git a/e b/e\nnew file mode 100644\nindex 0..0\n-- \n2.47.0\n";
        let files = read(patch);
        let paths: Vec<_> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["a", "n", "o", "r", "e"]);
        assert_eq!(hunks_of(&files[0].1).len(), 2);
        let content = "1\n2".to_owned();
        assert_eq!(
            files[1].1,
            FileChange::Add {
                content,
                is_executable: true
            }
        );
        assert!(matches!(&files[2].1, FileChange::Delete { hunks } if hunks.len() == 1));
        assert!(matches!(&files[3].1, FileChange::Update { new_path: Some(path), .. } if path == "s"));
        assert!(matches!(&files[4].1, FileChange::Add { content, .. } if content.is_empty()));
    }

    #[test]
    fn wrong_numbers_do_not_matter() {
        let body = " a\n-b\n+c\n+d\n";
        let next = "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n";
        for header in [
            "@@ -1,2 +1,3 @@",
            "@@ -1,9 +1,9 @@",
            "@@ -1 +1 @@",
            "@@ -0,0 +0,0 @@",
            "@@",
            "@@ ... @@",
        ] {
            let files = read(&format!("--- a/x\n+++ b/x\n{header}\n{body}\n{next}"));
            let lines: Vec<_> = files
                .iter()
                .map(|(_, change)| hunks_of(change)[0].lines.len())
                .collect();
            // Numbers that are too large include the empty line, which only separates.
            assert!(
                lines == [4, 2] || lines == [5, 2] && header.contains('9'),
                "{header}: {lines:?}"
            );
        }
    }

    #[test]
    fn lines_that_look_like_names_are_lines_if_the_numbers_have_them() {
        let files = read("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n--- b\n+++ c\n@@ -9 +9 @@\n-d\n+e\n");
        assert_eq!((files.len(), hunks_of(&files[0].1).len()), (1, 2));
        assert_eq!(hunks_of(&files[0].1)[0].lines[1].text, "-- b");
    }

    #[test]
    fn faults_are_errors_with_their_lines() {
        for case in [
            "--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n => line 1 of the patch: x and y are different files",
            "--- a/x\n+++ b/x\n => line 1 of the patch: there are no changes of x",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n a\n => line 3 of the patch: the hunk changes nothing",
            "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\nc\n => line 6 of the patch: each line of a hunk",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n+c\nd\n+e\n => line 6 of the patch: this line is in no hunk",
            "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-b\n => line 1 of the patch: both names",
            "--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n b\n+c\n => line 1 of the patch: a new file has only lines with `+`",
            "diff --git a/x b/x\nGIT binary patch\nliteral 0\n => line 2 of the patch: binary files",
            "diff --git a/x b/y\ncopy from x\ncopy to y\n => line 2 of the patch: copies",
            "diff --git a/x b/x\nnew file mode 120000\n => line 2 of the patch: symlinks",
            "diff --git a/x b/y\nindex 1..2\n => line 1 of the patch: both names",
        ] {
            let (patch, error) = case.split_once(" => ").unwrap();
            let found = read_unified(patch).unwrap_err().0;
            assert!(found.contains(error), "{patch:?}: {found}");
        }
    }
}
