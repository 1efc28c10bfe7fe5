//! Faces: other protocols by which clients reach the agents of this service.
//!
//! A face is pure. It turns the requests of its protocol into requests for runs, and the events and
//! the records of runs into its responses. Handlers do the rest.

pub(in crate::http) mod chat;
mod fields;
pub(in crate::http) mod turn;

pub(in crate::http) mod ag_ui;
pub(in crate::http) mod ai_sdk;
pub(in crate::http) mod langgraph;
pub(in crate::http) mod openai;
