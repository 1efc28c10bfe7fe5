//! The protocol of AI SDK UI, whose `useChat` shows a conversation on a page.
//!
//! A chat is a thread. A message of the agent is a *turn*: all that the agent has said and done
//! since a message of the user, in one run or, if calls waited for answers, in several. Its id is
//! that of its first run, so a page and the service name it alike.
//!
//! ```text
//! request.rs       the body ─▶ messages of the page
//! reconcile.rs     messages of the page ─▶ what is new in them
//! history.rs       a session ─▶ chunks ─▶ messages (message.rs)
//! ```
//!
//! The chunks of a run are in `faces/chat`. A stored message is folded from its chunks as a page
//! folds them, so both have the same parts.

mod request;

mod message;

mod history;
mod reconcile;

#[cfg(test)]
mod tests;

pub(in crate::http) use self::history::messages_of;
pub(in crate::http) use self::message::UiMessage;
pub(in crate::http) use self::reconcile::{answers_to, is_greeting, new_messages, nothing_new};
pub(in crate::http) use self::request::{ChatRequest, PageMessage};
