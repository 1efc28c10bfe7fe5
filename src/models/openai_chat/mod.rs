//! Chat completions as OpenAI defines them and as many servers speak them, each in its own accent.
//!
//! `request` turns neutral requests into bytes, `decoder` turns bytes into neutral events; neither does IO. `client` says how
//! its servers are reached.

mod answer;
mod calls;
mod client;
mod decoder;
mod reasoning;
mod request;
mod think;
mod usage;

pub(super) use self::client::client;
pub use self::decoder::ChatDecoder;
pub use self::request::{Dialect, encode_request};
