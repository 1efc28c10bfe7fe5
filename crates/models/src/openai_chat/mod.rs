//! Chat completions as OpenAI defines them, and the dialects of compatible servers.
//!
//! `request` turns neutral requests into bytes, and `decoder` turns bytes into neutral events.
//! Neither does IO. `client` connects to the servers.

mod calls;
mod client;
mod completion;
mod content;
mod decoder;
mod dialect;
mod drafts;
mod messages;
mod reasoning;
mod request;
mod think;

pub(super) use self::client::client;
pub use self::decoder::ChatDecoder;
pub use self::dialect::Dialect;
pub use self::request::encode_request;
