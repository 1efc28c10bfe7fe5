//! Run control data: what a run is, how it went and what it told. Never part of a bundle. Data only.

mod event;
mod run;
mod step;
mod subagent;

pub use self::event::{RunEvent, RunEventPayload};
pub use self::run::{RunError, RunMode, RunPhase, RunRecord, RunStatus, RunSummary};
pub use self::step::{StepRecord, ToolExecutionRecord};
pub use self::subagent::SubagentRecord;
