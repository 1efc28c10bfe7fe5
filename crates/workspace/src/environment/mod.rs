//! The environment of a run: variables, resources and a workspace of files. It is restored from a
//! session's bundle, changed by tools and hooks, and exported to the next bundle.

mod error;
mod jobs;
mod live;
mod subagents;
mod unread;
mod values;

pub use self::error::EnvironmentError;
pub use self::jobs::{Job, JobEnd, Jobs, RunningJob};
pub use self::live::{Environment, WorkspaceEdit};
pub use self::subagents::Merge;
pub use self::unread::TakenOutput;
pub use self::values::EnvironmentValues;
