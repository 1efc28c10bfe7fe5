//! The integration tests: one binary, so that linking is paid once.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that meets what it does not expect fails, and says loudly what it leaves out"
)]

mod support;

mod agent;
mod board;
mod documents;
mod end_to_end;
mod hostile;
mod http;
mod mcp;
mod models;
mod outbox;
mod outgoing;
mod process;
mod sandbox_network;
mod store;
mod tidy;
mod tools;
mod webhooks;
