//! Completions: the answers of Chat Completions, whole or in chunks.
//!
//! The protocol has no form for the agent's own tool calls, so they are left out.

mod chunks;
mod completion;

pub(in crate::http) use self::chunks::ChatReader;
pub(in crate::http) use self::completion::ChatCompletion;
