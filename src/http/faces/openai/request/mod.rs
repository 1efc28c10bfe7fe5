//! Requests in OpenAI's protocols, as requests for runs.
//!
//! ```text
//! create.rs        a request for a response          ┐ generation.rs, tools.rs: the settings
//! chat.rs          a request for a completion        ┘ items.rs, content.rs: the input
//! conversation.rs  a request for a conversation
//! decided.rs       items ─▶ the base of a request that names none
//! history/         items ─▶ messages, results and decisions
//! answers.rs       results and decisions ─▶ answers to the open calls of the base
//! ```

mod content;

mod items;
mod tools;

mod generation;

mod decided;
mod history;

mod answers;

mod chat;
mod conversation;
mod create;

pub(in crate::http) use self::answers::{Given, Verdict, answers_to};
pub(in crate::http) use self::chat::CreateChat;
pub(in crate::http) use self::conversation::CreateConversation;
pub(in crate::http) use self::create::{CreateResponse, no_conversation, no_previous, shortened};
pub(in crate::http) use self::decided::{after_request, decided_run};
pub(in crate::http) use self::history::{Arranged, arrange};
pub(in crate::http) use self::items::{Item, Opener, read_input};
