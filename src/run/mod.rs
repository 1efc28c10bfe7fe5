//! Runs: a request becomes a committed session or a readable failure. [`RunService::start`] in `execute.rs` tells the whole story; the
//! other files are its phases. No HTTP, no SQL, no provider's format.

mod execute;

mod active;
mod admission;
mod agent_checks;
mod agents;
mod control;
mod deliveries;
mod error;
mod export;
mod follow;
mod handle;
mod idempotency;
mod import;
mod inbox;
mod input;
mod limits;
mod live;
mod model_room;
mod models;
mod outcome;
mod overrides;
mod plan;
mod publish;
mod queue;
mod rates;
mod read;
mod remove;
mod request;
mod restore;
mod run_end;
mod service;
mod shared_looks;
mod subagents;
mod wait;
mod work;

pub use self::agent_checks::AgentChecks;
pub use self::agents::{AgentDirectory, AgentSource, ConfiguredAgent};
pub use self::control::ControlAnswer;
pub use self::deliveries::Redelivered;
pub use self::error::{AgentFilesError, Refusal, UnusableAgent, no_run, no_session, suggestion};
pub use self::follow::{DROP_REASONS, Followed, Follower, Following};
pub use self::handle::{CallerGuard, RunHandle};
pub use self::import::{ImportContext, ImportRequest, Imported};
pub use self::overrides::{OverrideChanges, Setting};
pub use self::remove::Removal;
pub use self::request::{EventOptions, InputMessage, OnDisconnect, RequestKey, RunRequest};
pub use self::service::{QueueSettings, RunPorts, RunService, RunSettings, SubagentSettings};
