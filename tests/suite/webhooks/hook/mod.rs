//! The hook `webhook` in whole runs, with a receiver over a real socket.

mod setup;

mod cancellation;
mod changes;
mod failures;
mod room;
mod signatures;
