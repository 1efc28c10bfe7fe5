//! The OpenAI Responses API: a conversation is a list of items, and so is a response.
//!
//! The provider stores nothing. Each request carries the whole conversation, with earlier reasoning
//! in its encrypted form. `encoder` and `input` turn neutral requests into bytes, and `decoder`
//! turns bytes into neutral events. Neither does IO. `protocol` joins both.

mod call;
mod completion;
mod decoder;
mod encoder;
mod failure;
mod input;
mod item;
mod message;
mod partial_text;
mod protocol;
mod reasoning;

pub(super) use self::protocol::PROTOCOL;
