//! Runs: turns a request into a committed session or into an error that the caller can read. Start
//! with [`start`](start()). Contains no HTTP, no SQL and no formats of providers.
//!
//! ```text
//! start      start.rs       plan, then open a light run, or accept one into the queue (accept.rs)
//! plan       plan/          all checks that may refuse a request
//! execute    execute/       restore ─ agent loop ─ export ─ publish ─ conclude, for every run
//! queue      queue/         lease, attempt, renew
//! spend      spend/         what a run reserves of limits of spending, and upkeep of reservations
//! control    control.rs     stop, cancel, steer
//! read       read/          records and lists; waits for a change, follows events
//! files      files/         the files of sessions, without a run
//! rewrite    rewrite.rs     the messages of threads, without a run
//! ```
//!
//! A request has these forms on its way to its rows. The queue stores the accepted request.
//!
//! ```text
//! body ─▶ CreateRun ─▶ RunRequest, in AcceptedRequest, in RunPlan ─▶ AgentState ─▶ RunRecord, in Commit ─▶ rows
//! ```
//!
//! All functions borrow one [`RunContext`]: the ports, the settings, and the state of this process.
//! `app` creates it. Files of this folder import from its folders, and each folder imports only
//! from those above it in the list below.

pub mod refusal;

mod request;

pub mod agents;

mod events;

mod webhook_message;

mod context;

mod spend;

pub mod read;

pub mod files;

mod plan;

mod work;

mod subagents;

mod execute;

mod queue;

mod control;

mod handle;

mod accept;

mod start;

mod deliveries;
mod hide;
pub mod import;
mod new_thread;
mod offered;
pub mod process;
pub mod reloads;
mod remove;
mod rewrite;

pub use self::accept::replay;
pub use self::context::settings;
pub use self::context::{ProcessState, RunContext, check_key};
pub use self::control::{ControlOutcome, await_ending, control_run, end_run, steer_run};
pub use self::deliveries::{Redelivered, redeliver};
pub use self::handle::{CallerGuard, RunHandle};
pub use self::hide::hide_run;
pub use self::new_thread::{CreatedThread, NewName, NewThread, create_thread, created_before};
pub use self::offered::{Offered, offered, offered_lookup};
pub use self::remove::{Removal, remove_session};
pub use self::request::{
    EventOptions, InputMessage, LastingSetting, OnDisconnect, ReaderGrace, RequestKey, RequestOrigin, RunRequest,
    ThreadFrom,
};
pub use self::rewrite::{MessageChange, change_messages};
pub use self::spend::standings;
pub use self::start::{start, start_new};
