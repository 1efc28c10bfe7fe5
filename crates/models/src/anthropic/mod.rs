//! Anthropic Messages.
//!
//! `request` turns neutral requests into bytes, and `decoder` turns bytes into neutral events.
//! Neither does IO. `client` connects to the servers.

mod blocks;
mod client;
mod completion;
mod decoder;
mod media;
mod request;
mod server_tools;
mod usage;

pub(super) use self::client::client;
pub use self::decoder::MessagesDecoder;
pub use self::request::{MessagesDialect, encode_request};
