//! Routes of sessions.

mod compare;
mod delete;
mod etag;
mod files;
mod import;
mod import_body;
mod import_part;
mod list;
mod show;
mod stream;
mod view;

pub use self::compare::SessionDiff;
pub(super) use self::compare::{__path_diff_sessions, __path_verify_session, diff_sessions, verify_session};
pub(super) use self::delete::{__path_delete_session, delete_session};
pub use self::files::FileEntry;
pub(super) use self::files::{
    __path_change_files, __path_get_ancestor, __path_get_archive, __path_get_file, __path_list_files,
    __path_merge_session, __path_put_blob, change_files, directory_room, file_entry, get_ancestor, get_archive,
    get_file, list_files, media_type, merge_session, put_blob,
};
pub(super) use self::import::{__path_import_session, import_session};
pub(super) use self::list::{
    __path_list_children, __path_list_lineage, __path_list_sessions, list_children, list_lineage, list_sessions,
};
pub(super) use self::show::{
    __path_get_session, __path_list_messages, MessageList, MessageRange, get_session, list_messages,
};
pub use self::view::SessionView;
pub(super) use self::view::absent_session;
