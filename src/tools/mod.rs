//! Tools: the registry, the checks and the execution of calls, and the built-in tools. No model, no
//! storage.

mod registry;

mod arguments;
mod executor;
mod output;

mod builtin;

pub use self::builtin::builtin_tools;
pub use self::executor::ToolSettings;
pub use self::registry::{ToolRegistry, ToolRegistryError};
