//! The registry and the executor of tools.

mod executor;
mod registry;
