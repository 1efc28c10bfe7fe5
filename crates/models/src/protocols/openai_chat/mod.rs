//! Chat completions as OpenAI defines them, and the dialects of compatible servers.
//!
//! `encoder` turns neutral requests into bytes, and `decoder` turns bytes into neutral events.
//! Neither does IO. `protocol` joins both.

mod calls;
mod completion;
mod content;
mod decoder;
mod drafts;
mod encoder;
mod messages;
mod protocol;
mod reasoning;
mod server;
mod think;

pub(super) use self::protocol::PROTOCOL;
