//! Bedrock's Converse: responses in, requests out, and both as they were recorded.

mod client;
mod decoder;
mod history;
mod recordings;
mod request;

pub(super) mod support;

pub(super) use self::recordings::recorded;
