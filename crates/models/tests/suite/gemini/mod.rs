//! Gemini's protocol: responses in, requests out, and both as they were recorded.

mod calls;
mod client;
mod decoder;
mod history;
mod recordings;
mod request;

pub(super) mod support;

pub(super) use self::recordings::recorded;
