//! The environment of a run: variables, resources and a workspace of files. It is restored from a
//! session's bundle, changed by tools and hooks, and exported to the next bundle.

mod error;
mod job_output;
mod jobs;
mod run_environment;
mod subagents;
mod values;

pub use self::error::EnvironmentError;
pub use self::job_output::TakenOutput;
pub use self::jobs::{Job, JobEnd, Jobs, RunningJob};
pub use self::run_environment::{Environment, WorkspaceEdit};
pub use self::subagents::Merge;
pub use self::values::EnvironmentValues;
