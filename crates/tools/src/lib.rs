//! Tools: the registry, the checks and the execution of calls, and the built-in tools. No model, no
//! storage.

pub mod mcp;
pub mod webhooks;

mod registry;

mod arguments;
mod call_limits;
mod executor;
mod long_output;
mod output;

mod builtin;
mod http;

pub use self::builtin::{
    BackendError, CommandBackend, CommandNetwork, CommandOutcome, CommandSettings, Commands, CommandsUnavailable,
    HttpFetchSettings, JobBackend, MaxJobs, Process, ProcessError, ProcessSettings, ShellCommand, builtin_tools,
    http_fetch, media_type, restorable_shell, shell, shell_job,
};
pub use self::call_limits::ToolSettings;
pub(crate) use self::http::deserialize_timeout;
pub use self::http::{
    HttpToolDefinition, HttpToolFault, HttpToolSource, Redactor, SecretValue, ToolSecrets, ValueSource, http_tools,
    is_connection_header,
};
pub use self::registry::{ToolRegistry, ToolRegistryError};
