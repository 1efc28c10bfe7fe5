//! The files of sessions.

mod archive;
mod blob;
mod body;
mod change;
mod child;
mod list;
mod media_types;
mod merge;
mod range;
mod read;
mod view;

pub(in crate::http) use self::archive::{__path_get_archive, get_archive};
pub(in crate::http) use self::blob::{__path_put_blob, put_blob};
pub(in crate::http) use self::change::{__path_change_files, change_files};
pub(in crate::http) use self::list::{__path_list_files, directory_room, list_files};
pub(in crate::http) use self::media_types::media_type;
pub(in crate::http) use self::merge::{__path_get_ancestor, __path_merge_session, get_ancestor, merge_session};
pub(in crate::http) use self::read::{__path_get_file, file_entry, get_file};
pub(in crate::http) use self::view::FileChange;
pub use self::view::FileEntry;
