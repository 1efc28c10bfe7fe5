//! The loop, the driver, the hooks and the state, against a scripted model and a clock that tests move.

mod setup;

mod any_execution;
mod budgets;
mod events_and_hooks;
mod failures;
mod interruptions;
mod should_stop;
mod state;
mod tool_steps;
