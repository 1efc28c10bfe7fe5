//! Subagents: other agents that work on tool calls of an agent, each in an execution of its own.
//!
//! A subagent is a `Tool` that exists for one execution (`tool.rs`). It holds the `Work` of the
//! agent above it, and derives its own: the same cancellation and deadline, the hooks of the agents
//! above, some of their tools, and one level less. Its spending also counts above. All agents of
//! the team are resolved when the run is planned (`team.rs`), so nothing is looked up during the
//! run.
//!
//! A subagent's tool call is never cut from outside. It ends by itself, with its usage and its
//! trace. If it completes or stops, its session goes to the `Children` of the execution above, and
//! from there into the run's commit. If it fails, its own `Children` are dropped.

mod team;

mod tool;

mod called;

mod journaled;
mod task;

mod children;
mod slots;
mod trace;

pub(super) use self::children::{ChildSession, Children};
pub(super) use self::journaled::restore_children;
pub(super) use self::slots::Slot;
pub use self::slots::SubagentSlots;
pub(super) use self::team::{Team, TeamSearch};
pub use self::tool::SubagentPorts;
pub(super) use self::tool::subagent_tools;
