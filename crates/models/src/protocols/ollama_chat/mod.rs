//! Ollama's own protocol, `/api/chat`.
//!
//! `encoder` turns neutral requests into bytes, and `decoder` turns bytes into neutral events.
//! Neither does IO. `protocol` joins both.

mod decoder;
mod encoder;
mod messages;
mod protocol;

pub(super) use self::protocol::PROTOCOL;
