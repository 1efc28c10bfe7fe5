//! Model clients: the recorded traffic, the rules of the decoder, requests, tools and files of providers, timeouts, retries and the scripted model.

mod bedrock;
mod calls;
mod decoder;
mod gemini;
mod memory;
mod messages;
mod network;
mod parameters;
mod recordings;
mod rejected;
mod request;
mod responses;
mod scripted;
pub(crate) mod small_frames;
mod sources;
mod sse;
mod support;
mod thinker;
mod tools;
mod wire_forms;
mod worst;
