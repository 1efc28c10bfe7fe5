//! Chat completions as OpenAI defines them and as many servers speak them, each in its own accent.
//!
//! `request` turns neutral requests into bytes, `decoder` turns bytes into neutral events; neither does IO. `client` joins them
//! to the network.

mod answer;
mod calls;
mod client;
mod decoder;
mod errors;
mod names;
mod reasoning;
mod request;
mod usage;
mod wire;

pub use self::client::{ChatSettingsError, OpenAiChat, Shared};
pub use self::decoder::ChatDecoder;
pub use self::errors::error_of_response;
pub use self::request::{Dialect, encode_request};
