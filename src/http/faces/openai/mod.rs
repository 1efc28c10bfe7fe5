//! The protocols of OpenAI: Responses with Conversations, and Chat Completions.

pub(in crate::http) mod ids;

pub(in crate::http) mod echo;
mod reasoning;

pub(in crate::http) mod stored_items;

pub(in crate::http) mod response;

pub(in crate::http) mod request;

pub(in crate::http) mod chat;
