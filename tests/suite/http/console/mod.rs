//! The console: its pages, and the sessions of browsers.

mod pages;
mod sessions;
