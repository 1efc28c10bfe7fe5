//! Routes of threads: conversations as named pointers to sessions. Runs move them; callers can move
//! them here.

mod body;
pub(super) mod change;
pub(super) mod files;
mod name;
pub(super) mod show;
