//! The files of sessions, without a run: read, changed, compared and merged.
//!
//! A change never touches its session. It publishes a child session with the same talk and context.
//! No model is asked.

mod ancestor;
mod blobs;
mod change;
mod child;
mod diff;
mod listing;
mod merge;
mod open;

pub use self::ancestor::common_ancestor;
pub use self::blobs::{StoredBlob, store_blob};
pub use self::change::{ChangeRequest, ChangeTarget, FileChange, FileSource, change_files};
pub use self::child::{Attempts, ChildSession};
pub(super) use self::child::{NewChild, made_before, publish_child, reserve};
pub use self::diff::{FilesDiff, diff_files};
pub use self::listing::list_after;
pub use self::merge::{MergeRequest, merge_files};
pub use self::open::{open_files, open_tree, session_of_thread, tree_of};
