//! Runs: a request becomes a committed session or a readable failure. [`RunService::start`] in `execute.rs` tells the whole story; the
//! other files are its phases. No HTTP, no SQL, no provider's format.

mod execute;

mod admission;
mod agent_checks;
mod agents;
mod error;
mod event_stream;
mod export;
mod handle;
mod import;
mod live;
mod models;
mod outcome;
mod plan;
mod publish;
mod read;
mod request;
mod restore;
mod service;
mod subagents;
mod work;

pub use self::agent_checks::AgentChecks;
pub use self::agents::AgentDirectory;
pub use self::error::{Refusal, UnusableAgent};
pub use self::handle::RunHandle;
pub use self::import::{ImportContext, ImportRequest};
pub use self::request::{InputMessage, OnDisconnect, RunRequest};
pub use self::service::{RunPorts, RunService, RunSettings};
