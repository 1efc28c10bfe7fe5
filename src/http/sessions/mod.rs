//! Routes of sessions.

pub(super) mod compare;
pub(super) mod delete;
mod etag;
pub(super) mod files;
pub(super) mod import;
mod import_body;
mod import_part;
pub(super) mod list;
pub(super) mod show;
pub(super) mod stream;
pub(super) mod view;
