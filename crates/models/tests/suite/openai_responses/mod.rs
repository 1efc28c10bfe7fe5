//! OpenAI responses: the recorded traffic, the rules of the decoder, requests and the way of a
//! response through the history.

mod client;
mod decoder;
pub(super) mod forms;
mod history;
mod item;
mod recordings;
mod request;
mod support;
