//! The agents that runs name: found, stored and checked.

mod directory;

mod checks;

pub use self::checks::{AgentChecks, ConfiguredAgent};
pub use self::directory::{AgentDirectory, AgentSource, Configured};
