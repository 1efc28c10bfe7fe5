//! The routes for LangGraph's clients. `faces/langgraph` has the forms of requests, states and
//! events; here threads and runs are found, started, followed and stopped.

mod body;
mod partial_answers;
mod run_request;
mod stream;
mod thread_changes;
mod thread_path;
mod thread_view;

pub(super) mod assistants;
pub(super) mod cancel;
pub(super) mod runs;
pub(super) mod start;
pub(super) mod states;
pub(super) mod threads;
