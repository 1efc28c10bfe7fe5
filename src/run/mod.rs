//! Runs: a request becomes a committed session or an error that the caller can read. Start with
//! [`RunStarter::start`] in `execute.rs`; the other files are its phases. Contains no HTTP, no SQL
//! and no formats of providers.
//!
//! ```text
//! start      execute.rs     plan, then open a light run or accept one into the queue
//! plan       plan.rs        what can be refused is refused here
//! execute    executor.rs    restore ─ agent loop ─ export ─ publish ─ conclude, for every run
//! queue      queue/         accept, lease, attempt
//! control    control.rs     stop, cancel, steer
//! files      files/         the files of sessions, without a run
//! read       read.rs        records and lists; wait.rs waits for a change, follow.rs follows events
//! ```
//!
//! Each part is a struct with the few ports that it needs. The module `app` creates it. The parts
//! share only `tasks.rs` and `active.rs`.

mod execute;

mod plan;

mod answers;
mod base;
mod inherited;
mod input;
mod limits;
mod models;
mod overrides;

mod executor;

mod agent_loop;
mod export;
mod publish;
mod restore;
mod subagents;
mod work;

mod queue;

mod control;
mod handle;

mod end_events;
mod event_sources;
mod follow;
mod followed;
mod read;
mod shared_reads;
mod wait;

mod agent_checks;
mod agents;
mod deliveries;
mod files;
mod idempotency;
mod import;
mod rates;
mod remove;

mod lifecycle;
mod runs;
mod served_tools;
mod settings;

mod active;
mod error;
mod failure;
mod inbox;
mod live;
mod model_room;
mod outcome;
mod request;
mod run_slots;
mod span;
mod tasks;

pub use self::active::ActiveRuns;
pub use self::agent_checks::{AgentChecks, ConfiguredAgent};
pub use self::agent_loop::AgentLoops;
pub use self::agents::{AgentDirectory, AgentSource};
pub use self::control::{ControlOutcome, RunController};
pub use self::deliveries::{Redelivered, Redelivery};
pub use self::error::{AgentFilesError, OpenCalls, Refusal, UnusableAgent, no_run, no_session, suggestion};
pub use self::execute::RunStarter;
pub use self::executor::Executor;
pub use self::files::{
    ChangeRequest, ChildSession, ConflictPart, EnvironmentConflict, FileChange, FileSource, FilesDiff, MergeRequest,
    SessionFiles, StoredBlob, diff_files, list_after, open_tree,
};
pub use self::follow::{Follower, Followers, Following};
pub use self::followed::{DROP_REASONS, Followed};
pub use self::handle::{CallerGuard, Callers, RunHandle};
pub use self::idempotency::IdempotencyKeys;
pub use self::import::{ImportContext, ImportRequest, Imported, SessionImporter};
pub use self::lifecycle::RunLifecycle;
pub use self::models::ModelSelection;
pub use self::plan::Planner;
pub use self::publish::Publisher;
pub use self::queue::{Attempts, LeaseRenewal, Leases, ProgressWriter, Quarantine, QueueLength, QueueWorker, RunQueue};
pub use self::rates::RequestRates;
pub use self::read::RunReader;
pub use self::remove::{Removal, SessionRemover};
pub use self::request::{EventOptions, InputMessage, OnDisconnect, RequestKey, RunRequest};
pub use self::run_slots::{LightSlots, QueueSlots};
pub use self::runs::Runs;
pub use self::settings::{
    IdempotencySettings, PriorityScope, ProcessRole, QueueSettings, RunSettings, SubagentSettings,
};
pub use self::subagents::{SubagentPorts, SubagentSlots};
pub use self::tasks::RunTasks;
