//! Subagents: agents that execute tool calls of another agent, each in a separate execution.
//!
//! A subagent is a `Tool` that exists for one execution (`tool.rs`). It has the `Work` of its
//! parent agent, and derives its own from it: the same cancellation and deadline, the hooks of its
//! ancestors, some of their tools, and one level less. Its usage also counts for its ancestors. The
//! plan of the run resolves all agents of the team (`team.rs`), so nothing is looked up during the
//! run.
//!
//! A subagent's tool call is never aborted from outside. It ends by itself, with its usage and its
//! trace. If it completes or stops, its session goes to the `Children` of the parent execution, and
//! from there into the run's commit. If it fails, its own `Children` are dropped.

mod tool;

mod called;

mod journaled;
mod task;

mod trace;

pub(super) use self::journaled::restore_children;
pub(super) use self::tool::subagent_tools;
