//! What the faces of pages share: a conversation of a person with an agent, as a thread.
//!
//! ```text
//! echo.rs     what is new on a page, as the record of its run retains it
//! writer.rs   a run, at work or stored ─▶ chunks (chunk.rs, parts_writer.rs)
//! history.rs  a session ─▶ what was said in it
//! ```
//!
//! The chunks are those of AI SDK UI, and the events of other protocols are made from them. So all
//! pages show a run alike.

mod chunk;
mod echo;
mod history;
mod parts_writer;
mod writer;

pub(in crate::http::faces) use self::chunk::{Chunk, RunMetadata, SubagentData};
pub(in crate::http::faces) use self::echo::page_metadata;
pub(in crate::http) use self::echo::{ChatEcho, EchoMessage};
pub(in crate::http) use self::history::ReadPassage;
pub(in crate::http::faces) use self::history::{Said, conversation_of};
#[cfg(test)]
pub(in crate::http::faces) use self::parts_writer::CUT;
pub(in crate::http) use self::parts_writer::tool_call_id;
pub(in crate::http) use self::writer::ChunkWriter;
