//! Environments: the variables and resources of a run, restored from its bundle and exported to the
//! next. No model, no tool, no storage.

mod in_memory;

pub use self::in_memory::InMemoryEnvironments;
