//! Model clients: the recorded traffic, the rules of the decoders, requests, tools, files and usage
//! of providers, timeouts, retries and the scripted model.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what it does not expect fails"
)]

// To its own tests, Cargo gives a library by its full name only.
extern crate agent_runtime_models as models;

mod allocations;
mod anthropic;
mod bedrock;
mod bytes;
mod client;
mod endings;
mod error_answers;
mod error_frames;
mod gemini;
mod histories;
mod incremental;
mod media;
mod memory;
mod open_calls;
mod openai_chat;
mod openai_responses;
mod parameters;
mod recordings;
mod refused;
mod rejected;
mod schema_rules;
mod schemas;
mod scripted;
mod sources;
mod sse;
mod support;
mod tools;
mod usage;
mod worst;
