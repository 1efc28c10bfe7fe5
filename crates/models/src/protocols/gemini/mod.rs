//! Gemini's `generateContent`.
//!
//! `encoder` turns neutral requests into bytes, and `decoder` turns bytes into neutral events.
//! Neither does IO. `protocol` joins both.

mod completion;
mod decoder;
mod encoder;
mod executed;
mod generation;
mod media;
mod parts;
mod protocol;
mod usage;

pub(super) use self::protocol::PROTOCOL;
