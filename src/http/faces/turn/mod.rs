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
//! A face gives a block the index that it has in its step, and a call its id: both are the same in
//! each replay. A takeover gives a step that begins again another id. The driver `react` is an
//! exception: it stores the thought before a call as text, and its events have it as reasoning.

mod parts;
mod reader;
mod stored;

pub(in crate::http) use self::parts::{Block, BlockKind, CallResult, Turn, TurnCall, TurnStep};
pub(in crate::http) use self::reader::{TurnChange, TurnReader};
