//! Webhooks over real sockets: the sender by itself, and the hook in whole runs.

mod hook;
mod sender;
