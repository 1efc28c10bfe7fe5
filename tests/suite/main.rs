//! The tests of the whole service, in one binary, so that linking is paid once. Those of a crate
//! are in its folder `tests/suite`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that meets what it does not expect fails, and says loudly what it leaves out"
)]

mod support;

mod documents;
mod end_to_end;
mod hostile;
mod http;
mod mcp;
mod outbox;
mod process;
mod sandbox_network;
mod tidy;
mod tools;
mod webhooks;
