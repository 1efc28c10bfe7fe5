//! The OpenAI Responses API: a conversation is a list of items, and so is a response.
//!
//! The provider stores nothing. Each request carries the whole conversation, with earlier reasoning
//! in its encrypted form. `request` and `input` turn neutral requests into bytes, and `decoder`
//! turns bytes into neutral events. Neither does IO. `client` connects to the servers.

mod call;
mod client;
mod completion;
mod decoder;
mod failure;
mod input;
mod item;
mod message;
mod partial_text;
mod reasoning;
mod request;

pub(super) use self::client::client;
pub use self::decoder::ResponsesDecoder;
pub use self::request::{Dialect, encode_request};
