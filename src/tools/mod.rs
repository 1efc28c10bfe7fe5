//! Tools: which exist, how their calls are checked and executed, and those that come with the service. No model, no storage.

mod registry;

mod arguments;
mod executor;
mod output;

mod builtin;

pub use self::builtin::builtin_tools;
pub use self::executor::ToolSettings;
pub use self::registry::{ToolRegistry, ToolRegistryError};
