//! Runs: turns a request into a committed session or a readable failure.
//!
//! Contains no HTTP, no SQL and no provider's format. Start with `execute.rs`:
//! [`RunService::start`] accepts a run, and the other files are its phases.
//!
//! *Light* runs live in the process that accepted them, and write one row at their end. All others
//! go through the *queue* (`queue/`): asynchronous runs, runs with an idempotency key, runs on a
//! thread, and runs of durability `step`. A worker of any replica leases a queued run and makes one
//! attempt at it.
//!
//! | looking for | go to |
//! |---|---|
//! | a run from its request to its end | `execute.rs`, `plan.rs`, `restore.rs`, `publish.rs` |
//! | queued runs | `queue/` |
//! | stop, cancel, steer, and the runs active here | `control.rs`, `active.rs`, `inbox.rs` |
//! | reading, following and waiting | `read.rs`, `follow.rs`, `wait.rs`, `run_end.rs` |
//! | agents, and what a run may do | `agents.rs`, `agent_checks.rs`, `limits.rs`, `rates.rs` |
//! | subagents | `subagents/`, `work.rs` |

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
pub use self::remove::Removal;
pub use self::request::{EventOptions, InputMessage, OnDisconnect, RequestKey, RunRequest};
pub use self::service::{QueueSettings, RunPorts, RunService, RunSettings, SubagentSettings};
