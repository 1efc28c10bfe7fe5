//! The entries of directories, and their totals.

use values::session::Hash;

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    File {
        /// The BLAKE3 of its bytes.
        hash: Hash,
        /// Its bytes.
        size: u64,
        /// Whether it may be executed.
        is_executable: bool,
        /// When its content last changed, in nanoseconds since 1970; 0 if that is unknown.
        modified: u64,
    },
    Symlink {
        /// Where it leads: relative to its directory, and inside the tree.
        target: String,
    },
    Directory {
        /// Its hash; `None` while something in it is not saved.
        hash: Option<Hash>,
        /// The totals below the directory.
        totals: Totals,
    },
}

/// How much is below a directory, at any depth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// The files and symlinks.
    pub files: u64,
    /// The directories, without the directory itself.
    pub directories: u64,
    /// The bytes of the files.
    pub bytes: u64,
}

impl Totals {
    /// Returns the number of files, symlinks and directories.
    pub fn entries(&self) -> u64 {
        self.files.saturating_add(self.directories)
    }

    /// Adds up two totals. A sum that is too large stays at the largest number, which is above all
    /// limits.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_add(other.files),
            directories: self.directories.saturating_add(other.directories),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}
