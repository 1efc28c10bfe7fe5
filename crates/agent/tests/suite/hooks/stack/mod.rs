//! The effects of hooks on requests, tool calls and the end of an execution, and of their failures.

mod around_models;
mod around_tools;
mod change_events;
mod continuation;
mod failures;
