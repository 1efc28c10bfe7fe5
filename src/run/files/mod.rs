//! The files of sessions, without a run: read, changed, compared and merged.
//!
//! A change never touches its session. It publishes a child session with the same talk and context.
//! No model is asked.

mod ancestor;
mod blobs;
mod change;
mod child;
mod conflict;
mod diff;
mod listing;
mod merge;
mod open;

pub use self::blobs::StoredBlob;
pub use self::change::{ChangeRequest, FileChange, FileSource};
pub use self::child::ChildSession;
pub use self::conflict::{ConflictPart, EnvironmentConflict};
pub use self::diff::{FilesDiff, diff_files};
pub use self::listing::list_after;
pub use self::merge::MergeRequest;
pub use self::open::{SessionFiles, open_tree};
