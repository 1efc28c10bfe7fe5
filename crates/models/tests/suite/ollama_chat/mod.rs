//! Ollama's protocol: responses in, requests out, and both as they were recorded.

mod client;
mod decoder;
mod recordings;
mod request;

pub(super) use self::recordings::recorded;
