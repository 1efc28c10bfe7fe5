//! agent-runtime runs LLM agents over immutable sessions.
//!
//! This package is the service: its HTTP API, the execution of runs, and the commands. It composes
//! the crates in `crates`. Read the modules in the order below: each imports only modules above it;
//! `tests/suite/tidy` checks that. `ARCHITECTURE.md` has the map.

pub mod metrics;
pub mod spans;

pub mod audit;
pub mod command_queue;
pub mod outbox;
pub mod retention;
pub mod run;

pub mod api_key;
pub mod tokens;

pub mod http;

pub mod config;
pub mod lifecycle;
pub mod telemetry;

pub mod app;
pub mod cli;
