//! Model clients: the recorded traffic, the rules of the decoders, requests, tools and files of
//! providers, timeouts, retries and the scripted model.

mod allocations;
mod anthropic;
mod bedrock;
mod client;
mod endings;
mod error_answers;
mod error_frames;
mod gemini;
mod histories;
mod incremental;
mod memory;
mod open_calls;
mod openai_chat;
mod openai_responses;
mod parameters;
mod recordings;
mod refused;
mod rejected;
mod schemas;
mod scripted;
mod sources;
mod sse;
mod support;
mod tools;
mod worst;
