//! OpenAI responses: the recorded traffic, the rules of the decoder, requests and the way of an answer through the history.

mod bytes;
mod decoder;
pub(super) mod forms;
mod history;
mod items;
mod network;
mod recordings;
mod request;
mod service;
mod support;
