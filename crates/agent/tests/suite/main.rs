//! The loop, the drivers, the hooks and the state, against a scripted model and a clock that tests
//! move. The folders are those of `crates/agent/src`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that meets what it does not expect fails"
)]

// To its own tests, Cargo gives a library by its full name only.
extern crate agent_runtime_agent as agent;

mod arbitrary_state;
mod comparison;
mod memory_journal;
mod setup;

mod agent_loop;
mod answers;
mod appends;
mod compilers;
mod control;
mod definition;
mod drivers;
mod environment;
mod hooks;
mod progress;
mod prompts;
mod recorder;
mod state;
