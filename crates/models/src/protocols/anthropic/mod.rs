//! Anthropic Messages.
//!
//! `encoder` turns neutral requests into bytes, and `decoder` turns bytes into neutral events.
//! Neither does IO. `protocol` joins both.

mod blocks;
mod completion;
mod decoder;
mod encoder;
mod media;
mod protocol;
mod server_tools;
mod usage;

pub(super) use self::protocol::PROTOCOL;
