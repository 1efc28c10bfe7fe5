//! The files of sessions.

pub(in crate::http) mod archive;
pub(in crate::http) mod blob;
mod body;
pub(in crate::http) mod change;
mod child;
pub(in crate::http) mod list;
pub(in crate::http) mod media_types;
pub(in crate::http) mod merge;
mod range;
pub(in crate::http) mod read;
pub(in crate::http) mod view;
