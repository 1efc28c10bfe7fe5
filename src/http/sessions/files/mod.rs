//! The files of sessions.

pub(in crate::http) mod archive;
pub(in crate::http) mod blob;
pub(in crate::http) mod change;
pub(in crate::http) mod change_body;
mod child;
pub(in crate::http) mod download;
pub(in crate::http) mod list;
pub(in crate::http) mod media_types;
pub(in crate::http) mod merge;
mod range;
pub(in crate::http) mod view;
