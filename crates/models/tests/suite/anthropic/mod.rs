//! Anthropic Messages: responses in, requests out, and both as they were recorded.

mod blocks;
mod client;
mod decoder;
mod history;
mod recordings;
mod request;
mod server_tools;

pub(super) mod forms;
mod histories;
mod support;
