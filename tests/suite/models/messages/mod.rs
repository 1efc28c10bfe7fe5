//! Anthropic Messages: answers in, requests out, and both as they were recorded.

mod blocks;
mod decoder;
mod history;
mod network;
mod replay;
mod request;
mod server_tools;

pub(super) mod forms;
mod histories;
mod support;
