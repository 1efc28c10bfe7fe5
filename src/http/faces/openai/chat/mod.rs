//! Completions: the answers of Chat Completions, whole or in chunks.
//!
//! Both have the same message (`message.rs`): the chunks of a stream add up to the completion. The
//! protocol has no form for the agent's own tool calls, so they are left out.
//!
//! ```text
//! Turn ─▶ message.rs ─┬─▶ completion.rs   the completion
//!                     └─▶ chunks.rs       its chunks, the words as they arrive
//! ```

mod message;

mod completion;

mod chunks;

pub(in crate::http) use self::chunks::ChatReader;
pub(in crate::http) use self::completion::ChatCompletion;

#[cfg(test)]
mod tests;
