//! Hooks: what each point may change, how they are called, the error policy, and the hooks that
//! agents attach by name.

pub(super) mod probe;

mod builtin;
mod error_policy;
mod permissions;
mod registry;
mod stack;
