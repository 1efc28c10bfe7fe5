//! The loop, the drivers, the hooks and the state, against a scripted model and a clock that tests
//! move. The folders are those of `crates/agent/src`.

mod comparison;
mod setup;

mod agent_loop;
mod answers;
mod appends;
mod compilers;
mod control;
mod drivers;
mod environment;
mod hooks;
mod progress;
mod recorder;
mod state;
