//! OpenAI responses: a conversation is a list of items, and an answer is one too.
//!
//! The provider keeps nothing: each request carries the whole conversation, with the reasoning of earlier answers in its encrypted
//! form. `request` and `input` turn neutral requests into bytes, `decoder` turns bytes into neutral events; neither does IO. `client`
//! joins them to the network.

mod answer;
mod call;
mod client;
mod decoder;
mod failure;
mod input;
mod item;
mod kept;
mod message;
mod reasoning;
mod request;
mod usage;
mod words;

pub(super) use self::client::client;
pub use self::decoder::ResponsesDecoder;
pub use self::request::{Dialect, encode_request};
