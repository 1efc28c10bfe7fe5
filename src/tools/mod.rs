//! Tools: the registry, the checks and the execution of calls, and the built-in tools. No model, no
//! storage.

mod registry;

mod arguments;
mod executor;
mod long_output;
mod output;

mod builtin;
mod http;

pub use self::builtin::{HttpFetchSettings, builtin_tools, http_fetch};
pub use self::executor::ToolSettings;
pub use self::http::{HttpToolDefinition, HttpToolFault, HttpToolSource, ToolSecrets, http_tools};
pub use self::registry::{ToolRegistry, ToolRegistryError};
