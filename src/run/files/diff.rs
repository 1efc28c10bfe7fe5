//! Compares the files of two sessions. The number of files, their bytes and the bytes of the result
//! are bounded.

use tasks::off_thread::by_size;
use values::tenant::TenantId;
use workspace::{Entry, FileDiff, Tree, TreeChange, TreeError, unified_diff};

/// The most files that are compared.
const MAX_CHANGES: usize = 1_000;
/// The most bytes of unified differences.
const MAX_TEXT: usize = 1 << 20;
/// Larger files are not compared as texts.
const MAX_FILE: u64 = 1 << 20;
/// The most bytes of files that are read.
const MAX_READ: u64 = 32 << 20;

/// How the files of two sessions differ.
#[derive(Debug, Clone, Default)]
pub struct FilesDiff {
    /// The changes by path, with the difference of the texts.
    pub changes: Vec<(TreeChange, FileDiff)>,
    /// Whether these are all changes.
    pub is_complete: bool,
}

/// The rest of the limits of a comparison.
struct Budget {
    text: usize,
    read: u64,
}

/// Compares two trees of a tenant. At a time, two files are in memory. Large files are not read.
pub async fn diff_files(tenant: &TenantId, left: &Tree, right: &Tree) -> Result<FilesDiff, TreeError> {
    let found = left.diff(right, MAX_CHANGES).await?;
    let mut budget = Budget {
        text: MAX_TEXT,
        read: MAX_READ,
    };
    let mut changes = Vec::with_capacity(found.changes.len());
    for change in found.changes {
        let diff = budget.compare(tenant, [left, right], &change).await?;
        changes.push((change, diff));
    }
    Ok(FilesDiff {
        changes,
        is_complete: !found.is_truncated,
    })
}

impl Budget {
    /// Compares the texts of a file. Something that is no file has no text.
    async fn compare(
        &mut self,
        tenant: &TenantId,
        [left, right]: [&Tree; 2],
        change: &TreeChange,
    ) -> Result<FileDiff, TreeError> {
        let (Some(before), Some(after)) = (file_of(change.before.as_ref()), file_of(change.after.as_ref())) else {
            return Ok(FileDiff::default());
        };
        let sizes = [before, after].map(|file| file.map_or(0, size_of));
        let bytes = sizes.iter().sum();
        if self.text == 0 || bytes > self.read || sizes.iter().any(|size| *size > MAX_FILE) {
            return Ok(FileDiff {
                is_truncated: true,
                ..FileDiff::default()
            });
        }
        self.read -= bytes;
        let before = match before {
            Some(entry) => Some(left.read_entry(entry).await?),
            None => None,
        };
        let after = match after {
            Some(entry) => Some(right.read_entry(entry).await?),
            None => None,
        };
        let (path, room) = (change.path.clone(), self.text);
        let compare = move || unified_diff(&path, before.as_deref(), after.as_deref(), room);
        let diff = by_size(tenant, bytes, compare).await;
        self.text = self.text.saturating_sub(diff.text.len());
        Ok(diff)
    }
}

/// Returns the file of a side, or that the side has none; `None` if it has something else.
#[expect(clippy::option_option, reason = "no file and something else differ")]
fn file_of(entry: Option<&Entry>) -> Option<Option<&Entry>> {
    match entry {
        None => Some(None),
        Some(Entry::File { .. }) => Some(entry),
        Some(Entry::Symlink { .. } | Entry::Directory { .. }) => None,
    }
}

fn size_of(entry: &Entry) -> u64 {
    match entry {
        Entry::File { size, .. } => *size,
        Entry::Symlink { .. } | Entry::Directory { .. } => 0,
    }
}
