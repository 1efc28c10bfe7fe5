//! What hooks do to requests, tool calls and the end of an execution, and what their failures do.

mod around_models;
mod around_tools;
mod change_events;
mod continuation;
mod failures;
