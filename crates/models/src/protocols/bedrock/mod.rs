//! Amazon Bedrock's Converse and `ConverseStream`.
//!
//! `encoder` turns neutral requests into bytes, and `decoder` turns bytes into neutral events.
//! `events` splits streams. None of them does IO. `protocol` joins both, and `signature`
//! authenticates requests.

mod blocks;
mod completion;
mod decoder;
mod encoder;
mod events;
mod media;
mod names;
mod protocol;
mod signature;
mod usage;

pub(super) use self::protocol::PROTOCOL;
