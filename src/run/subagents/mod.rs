//! Subagents: other agents that work on calls of an agent, each in an execution of its own below the one that it works for.
//!
//! What they spend is spent of the run, and what they make is published with its session, or not at all.

mod team;

mod tool;

mod called;

mod kept;
mod task;

mod children;
mod slots;
mod trace;

pub(super) use self::children::{ChildSession, Children};
pub(super) use self::kept::restore_children;
pub(super) use self::slots::Slot;
pub(super) use self::team::Team;
