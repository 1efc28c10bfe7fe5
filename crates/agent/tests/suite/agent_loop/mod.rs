//! The agent loop: the order of its points and events, cuts, messages that arrive, pauses and
//! resumption.

mod any_execution;
mod cuts;
mod events_and_hooks;
mod inbox;
mod interruptions;
mod pauses;
mod resumption;
