//! The hooks that agents attach by name.

mod context_config;
mod finish_reason;
mod limits;
mod redaction;
mod self_critique;
