//! Commits: what they publish, what they refuse, and what a repeated one finds.

mod bundles;
mod conflicts;
mod contexts;
mod mixes;
mod subagent_failures;
pub(crate) mod subagents;
