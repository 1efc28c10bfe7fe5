//! Workspaces: the files of a session as an immutable tree. Trees are stored, compared and merged.
//!
//! A tree is a directory and everything below it. The hash of a directory covers all of its files,
//! so two trees with equal hashes are equal. A change returns a new tree that shares all unchanged
//! parts. New files stay in memory until the tree is saved.
//!
//! Contents are stored through the port [`Contents`]. No database, no agent, no disk.

pub mod checkout;
pub mod environment;

mod command_paths;
mod contents;
mod entry;
mod error;
mod in_memory;
mod limits;
mod path;
mod path_error;

mod certain_edits;
mod conflict;
mod diff;
mod edit;
mod merge;
mod merge_files;
mod merge_leaf;
mod merge_text;
mod merged_directory;
mod read;
mod resolve;
mod save;
mod text;
mod times;
mod tree;
mod unified;
mod unsaved;
mod walk;

mod blob;
mod bytes_codec;
mod chunks;
mod confirm;
mod directory;
mod links;
mod load;
mod node;
mod shapes;
mod side_by_side;
mod split;
mod symlink;

#[cfg(test)]
mod tests;

pub use self::blob::{find_file, store_file};
pub use self::command_paths::{pattern_in_workspace, root_of_relative};
pub use self::conflict::{ConflictKind, MergeConflict, Merged};
pub use self::contents::{Content, ContentKind, Contents, ContentsError, StoredContent};
pub use self::diff::TreeChange;
pub use self::entry::{Entry, Totals};
pub use self::error::TreeError;
pub use self::in_memory::InMemoryContents;
pub use self::limits::{MAX_PATH_BYTES, WorkspaceLimits};
pub use self::links::{InvalidContent, Link, content_links};
pub use self::merge::merge;
pub use self::path::FilePath;
pub use self::path_error::PathError;
pub use self::shapes::Shapes;
pub use self::tree::Tree;
pub use self::unified::{FileDiff, unified_diff};
