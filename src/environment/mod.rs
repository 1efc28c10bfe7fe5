//! Environments: what a run works in, restored from its bundle and exported to the next one. No model, no tool, no storage.

mod in_memory;

pub use self::in_memory::InMemoryEnvironments;
