//! Routes of sessions.

mod compare;
mod delete;
mod etag;
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
pub(super) use self::import::{__path_import_session, import_session};
pub(super) use self::list::{
    __path_list_children, __path_list_lineage, __path_list_sessions, list_children, list_lineage, list_sessions,
};
pub(super) use self::show::{
    __path_get_session, __path_list_messages, MessageList, MessageRange, get_session, list_messages,
};
pub use self::view::SessionView;
pub(super) use self::view::absent_session;
