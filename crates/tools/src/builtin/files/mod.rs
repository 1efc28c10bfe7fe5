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

use self::edit::edit_file;
use self::glob::glob;
use self::grep::grep_files;
use self::list::list_files;
pub(crate) use self::media::media_type;
use self::patch::apply_patch;
use self::read::read_file;
use self::write::write_file;
use super::environment_tool::FunctionTool;

/// Returns the tools for files.
pub(super) fn file_tools() -> [FunctionTool; 7] {
    [
        read_file(),
        write_file(),
        edit_file(),
        apply_patch(),
        list_files(),
        glob(),
        grep_files(),
    ]
}
