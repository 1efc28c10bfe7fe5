//! The turn of an agent: its texts, its reasoning and its calls in one run, step by step. All faces
//! share it.
//!
//! A stream reads the turn from the events of a run (`reader.rs`), and a later request from what is
//! stored of it (`stored.rs`). Both have the same steps, blocks and calls, so a face that makes its
//! items from a turn shows a run alike, however a client reads it.
//!
//! ```text
//! RunEvent    ─▶ TurnReader ─▶ TurnChange    ─▶ the events of a face
//!                     └──────▶ Turn ┬────────▶ the items of a face
//! RunMessages ──────────────────────┘
//! ```
//!
//! A face gives a block a number within its step, and a call its id: both are the same in
//! each replay. A takeover gives a step that begins again another id.

mod open_call;
mod parts;
mod reader;
mod stored;

pub(in crate::http) use self::open_call::arguments_text;
pub(in crate::http) use self::parts::{Block, BlockKind, CallName, CallResult, Turn, TurnCall, TurnStep};
pub(in crate::http) use self::reader::{TurnChange, TurnReader};
pub(in crate::http) use self::stored::read_step;

#[cfg(test)]
pub(in crate::http) mod arbitrary;
