//! The registry and the executor of tools, the built-in tools, and the tools over HTTP.

mod builtin;
mod executor;
mod http_fetch;
mod http_tools;
mod moving_names;
mod registry;
pub(crate) mod setup;
