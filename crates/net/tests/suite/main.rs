//! Requests to addresses that others choose, over real sockets. The folders are those of
//! `crates/net/src`.

#![expect(clippy::unwrap_used, reason = "a test that meets what it does not expect fails")]

// To its own tests, Cargo gives a library by its full name only.
extern crate agent_runtime_net as net;

mod outgoing;
