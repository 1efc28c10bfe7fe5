//! The protocols of OpenAI: Responses with Conversations, and Chat Completions.

pub(in crate::http) mod ids;

pub(in crate::http) mod echo;
pub(in crate::http) mod failure;
pub(in crate::http) mod reasoning;

pub(in crate::http) mod named_marks;

pub(in crate::http) mod executed_calls;
pub(in crate::http) mod item_list;
mod parts;
pub(in crate::http) mod stored_items;

pub(in crate::http) mod response;

pub(in crate::http) mod passage;
pub(in crate::http) mod removal;

pub(in crate::http) mod request;

pub(in crate::http) mod chat;
