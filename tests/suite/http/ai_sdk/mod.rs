//! The routes for AI SDK UI over real sockets. The page of these tests folds chunks as `useChat`
//! does; `process::faces` has the real one, in a browser.

mod chat;
mod forged;
mod page;
mod streams;

use crate::end_to_end::on_every_store as on_every_database;
