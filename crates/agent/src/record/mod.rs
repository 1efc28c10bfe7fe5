//! Run control data: records and events of runs. Never part of a bundle. Data only.

mod approval;
mod creator;
mod delivery;
mod event;
mod named;
mod required_action;
mod run;
mod steering;
mod step;
mod subagent;
mod thread;
mod view;

pub use self::approval::ApprovalView;
pub use self::creator::{CertificateCreator, Creator, KeyCreator, TokenCreator};
pub use self::delivery::{DeliveryRecord, DeliveryStatus, NewDelivery, receiver_of};
pub use self::event::{RunEvent, RunEventPayload, event_weight};
pub use self::required_action::RequiredActionView;
pub use self::run::{RunError, RunMode, RunPhase, RunRecord, RunStatus, RunSummary};
pub use self::steering::{
    MAX_MESSAGE_KEY_BYTES, MAX_RUN_MESSAGES, MAX_RUN_MESSAGES_BYTES, RunControl, SteeringMessage, SteeringStatus,
};
pub use self::step::{StepRecord, ToolExecutionRecord};
pub use self::subagent::SubagentRecord;
pub use self::thread::{ParseThreadNameError, ThreadName, ThreadRecord};
pub use self::view::{RunSummaryView, RunView, StopSignalView};
