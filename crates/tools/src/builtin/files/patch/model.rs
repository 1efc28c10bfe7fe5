//! The changes of a patch, in any format.

/// The changes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePatch {
    /// The file, as the patch names it.
    pub(super) path: String,
    pub(super) change: FileChange,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileChange {
    /// The file is new.
    Add { content: String, is_executable: bool },
    /// The file is deleted. If there are hunks, they must remove its whole content.
    Delete { hunks: Vec<Hunk> },
    /// The file is changed, renamed or both.
    Update {
        hunks: Vec<Hunk>,
        new_path: Option<String>,
        is_executable: Option<bool>,
    },
}

/// Lines of a file and their replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The line of the patch that the hunk begins with, from 1.
    pub(super) patch_line: usize,
    /// The number of the first old line, from 1, if the patch has numbers. Without old lines, the
    /// number of the line before the new ones.
    pub(super) start: Option<usize>,
    /// Lines of the file that come before the hunk, in order.
    pub(super) anchors: Vec<String>,
    /// Whether the old lines are the last ones of the file.
    pub(super) is_at_end: bool,
    pub(super) lines: Vec<HunkLine>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HunkLine {
    pub(super) kind: LineKind,
    /// The line without LF. It may end with CR.
    pub(super) text: String,
    /// Whether LF follows.
    pub(super) has_end: bool,
}

/// The role of a line in a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Context,
    Removed,
    Added,
}

/// Why a patch can't be read. The message is for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchError(pub(super) String);

impl PatchError {
    /// Makes an error about a line of the patch, from 1.
    pub(super) fn at(line: usize, message: impl std::fmt::Display) -> Self {
        Self(format!("line {line} of the patch: {message}"))
    }
}

impl Hunk {
    /// Returns the old lines: context and removed ones.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind != LineKind::Added)
    }

    /// Returns whether the hunk changes anything.
    pub(super) fn has_changes(&self) -> bool {
        self.lines.iter().any(|line| line.kind != LineKind::Context)
    }
}

impl HunkLine {
    /// Reads a line of a hunk. An empty line is an empty line of context, whose space was lost.
    /// Returns `None` if the line belongs to no hunk.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (kind, text) = match line.as_bytes().first() {
            None => (LineKind::Context, ""),
            Some(b'\r') if line.len() == 1 => (LineKind::Context, line),
            Some(b' ') => (LineKind::Context, &line[1..]),
            Some(b'-') => (LineKind::Removed, &line[1..]),
            Some(b'+') => (LineKind::Added, &line[1..]),
            Some(_) => return None,
        };
        Some(Self {
            kind,
            text: text.to_owned(),
            has_end: true,
        })
    }
}
