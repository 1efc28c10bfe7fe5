//! Hooks: what each point may change, what a hook does to requests, tools and the end of an execution, and the hooks of the service.

pub(super) mod probe;

mod around_models;
mod around_tools;
mod continuation;
mod failures;
mod permissions;
mod registry;
mod told_changes;

mod context_config;
mod finish_reason;
mod limits;
mod redaction;
mod redaction_bounds;
mod self_critique;
