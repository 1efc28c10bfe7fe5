//! Gemini's protocol: answers in, requests out, and both as they were recorded.

mod bytes;
mod decoder;
mod history;
mod network;
mod recordings;
mod request;
mod service;

pub(super) mod support;

pub(super) use self::recordings::recorded;
