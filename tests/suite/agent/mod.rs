//! The loop, the driver, the hooks and the state, against a scripted model and a clock that tests move.

mod comparison;
mod setup;

mod any_execution;
mod billed_apart;
mod budgets;
mod compilers;
mod cuts;
mod ending_tools;
mod error_policies;
mod events_and_hooks;
mod failures;
mod fallbacks;
mod hooks;
mod interruptions;
mod journal_failures;
mod left_in_midst;
mod pauses;
mod react;
mod resumption;
mod round_trips;
mod scripted;
mod should_stop;
mod spending;
mod state;
mod steering;
mod stops;
mod structured;
mod tool_choice;
mod tool_steps;
mod traces;
mod transitions;
mod updates;
