//! The console: its pages, and the sessions of the browsers that use them. The console itself is in
//! the folder `console` of the repository. It uses the API alone.

mod files;
pub(super) mod page_file;
pub(super) mod pages;
pub(super) mod session;
