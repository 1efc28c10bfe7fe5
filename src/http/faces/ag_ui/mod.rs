//! AG-UI 1.0, the protocol of CopilotKit and other pages (<https://ag-ui.com>).
//!
//! A page sends one request for everything: `RunAgentInput`. The events of the response are made
//! from the chunks of `faces/chat`.
//!
//! ```text
//! request.rs       the body ─▶ messages, answers, tools and state of the page
//! reconcile.rs     those ─▶ what is new in them
//! writer.rs        a run at work ─▶ events (event.rs, agent_events.rs, outcome.rs)
//! history.rs       a session ─▶ events ─▶ messages (fold.rs, message.rs)
//! ```

mod request;

mod agent_events;
mod event;
mod fold;
mod message;
mod outcome;

mod history;
mod reconcile;
mod writer;

#[cfg(test)]
mod tests;

pub(in crate::http) use self::history::messages_of;
pub(in crate::http) use self::outcome::{EndMetadata, Outcome};
pub(in crate::http) use self::reconcile::{Variables, changed_variables};
pub(in crate::http) use self::request::{PageMessage, RunInput};
pub(in crate::http) use self::writer::{EventWriter, Follower};
