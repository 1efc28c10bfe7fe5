//! The tools for the files of the workspace. They read and change the tree of the environment, and
//! never touch a disk.
//!
//! Readers see the files as they are when the call begins. Writers wait for each other, and each
//! one sees the changes of those before it. A change that fails changes nothing.

mod edit;
mod edits;
mod glob;
mod grep;
mod ignored;
mod line_ends;
mod list;
mod listing;
mod media;
mod patch;
mod paths;
mod read;
mod select;
mod text;
mod write;

use std::sync::Arc;

use self::edit::EditFile;
use self::glob::Glob;
use self::grep::Grep;
use self::list::ListFiles;
pub use self::media::media_type;
use self::patch::ApplyPatch;
use self::read::ReadFile;
use self::write::WriteFile;
use crate::agent::ports::Tool;

/// Returns the tools for files.
pub(super) fn file_tools() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ReadFile::new()),
        Arc::new(WriteFile::new()),
        Arc::new(EditFile::new()),
        Arc::new(ApplyPatch::new()),
        Arc::new(ListFiles::new()),
        Arc::new(Glob::new()),
        Arc::new(Grep::new()),
    ]
}
