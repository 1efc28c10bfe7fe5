//! Gemini's `generateContent`.
//!
//! `request` turns neutral requests into bytes, and `decoder` turns bytes into neutral events.
//! Neither does IO. `client` connects to the servers.

mod client;
mod completion;
mod decoder;
mod executed;
mod generation;
mod media;
mod parts;
mod request;
mod usage;

pub(super) use self::client::client;
pub use self::decoder::GeminiDecoder;
pub use self::generation::GeminiDialect;
pub use self::request::encode_request;
