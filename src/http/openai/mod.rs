//! The routes for the clients of OpenAI. `faces/openai` has the forms of requests and responses;
//! here requests are read, runs are started and followed, and responses are sent.

mod body;
mod failure;

mod base;
mod references;
mod transcript;

mod finished;
mod lists;
mod response_events;
mod start;

pub(super) mod chat;
pub(super) mod conversation_items;
pub(super) mod conversations;
pub(super) mod models;
pub(super) mod response_by_id;
pub(super) mod responses;
