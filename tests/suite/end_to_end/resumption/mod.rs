//! Runs whose process dies in their midst: another goes on with them, and what comes of it is what
//! would have been.

mod commands;
mod deaths;
mod deferred_tools;
mod durable_steps;
mod leases;
mod progress;
mod sessions;
mod stored_prompts;
mod subagents;
mod unreadable_requests;
mod workspaces;
pub(in crate::end_to_end) mod world;
