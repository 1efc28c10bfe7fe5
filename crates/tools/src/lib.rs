//! Tools: the registry, the checks and the execution of calls, the built-in tools, HTTP tools, the
//! tools of MCP servers ([`mcp`]), and webhooks ([`webhooks`]).
//!
//! A tool reaches the outside only through the guard of outgoing requests (`net`) or in the sandbox
//! (`sandbox`). Nothing here knows a model or a store.

pub mod mcp;
pub mod webhooks;

mod registry;

mod fault;

mod arguments;
mod call_limits;
mod executor;
mod long_output;
mod output;

mod builtin;
mod http;

pub use self::builtin::{
    BackendError, CommandBackend, CommandNetwork, CommandOutcome, CommandSettings, Commands, HttpFetchSettings,
    MaxJobs, ShellCommand, builtin_tools, http_fetch, restorable_shell, shell, shell_job,
};
pub(crate) use self::builtin::{ProcessSettings, media_type};
pub use self::call_limits::CallLimits;
pub use self::fault::DefinitionFault;
pub use self::http::{HttpToolDefinition, HttpToolSource, ToolSecrets, http_tools};
pub(crate) use self::http::{Redactor, SecretValue, ValueSource, header_name};
pub use self::registry::{ToolRegistry, ToolRegistryError};
