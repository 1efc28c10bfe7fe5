//! Responses: a run as the response object, and as the events of its stream.
//!
//! All items are made in one way (`projection.rs`). So the last event of a stream has the response
//! that a later request retrieves. The ids of items, their order and the numbers of the events
//! depend on the events of the run alone: each replay is the same.
//!
//! ```text
//! Turn ─▶ projection.rs ─▶ OutputItem ─┬─▶ object.rs   the response
//!                                      └─▶ writer.rs   the events of an item ─▶ stream.rs
//! ```
//!
//! | of a step | is shown | when |
//! |---|---|---|
//! | its words | as `reasoning` and `message` | as they arrive |
//! | its words, if they begin with reasoning that may get marks | likewise | the reasoning as it arrives, the rest at the end of the step |
//! | its words, if the output is JSON | as one `message`, of the final response alone | at the end of the run |
//! | its marks, for a client that asks for them | sealed in the `reasoning` that begins the step, or in one after its words | at the end of the run |
//! | a call of the agent's own tools that has ended | as `mcp_call`, or not at all | when it and the calls before it have ended |
//! | an open call | as `function_call` or `mcp_approval_request` | at the end of the run |
//!
//! A call is shown as open only at the end, since the service corrects a call whose arguments do
//! not fit, and a client would execute it.

mod items;

mod status;

mod projection;

mod object;

mod events;
mod writer;

mod stream;

pub(in crate::http) use self::events::WireEvent;
pub(in crate::http) use self::object::{ResponseObject, output_items, response_of};
pub(in crate::http) use self::projection::ResponseSettings;
pub(in crate::http) use self::status::is_cut;
pub(in crate::http) use self::stream::{ResponseStream, stream_of_stored};

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod lint;
#[cfg(test)]
mod tests;
