//! The definition of an agent, as an operator or a caller configures it. Data, and checks of it.

mod agent;
mod durability;
mod error_policy;
mod script;
mod subagents;

pub use self::agent::{AgentDefinition, DriverKind, HookConfig, SubagentConfig, SubagentWorkspace};
pub use self::durability::{Durability, DurabilityChoice};
pub use self::error_policy::{ErrorDecision, ErrorHandling, ErrorPolicy, ErrorPolicyPreset};
pub use self::script::{ScriptStep, ScriptedCall, ScriptedError};
