//! The routes for AI SDK UI. `faces/ai_sdk` has the forms of requests, chunks and messages; here
//! runs are found, started, followed and stopped.

mod body;
mod chat_request;
mod chat_stream;

pub(super) mod chat;
pub(super) mod messages;
pub(super) mod resume;
pub(super) mod stop;
