//! Amazon Bedrock's Converse and `ConverseStream`.
//!
//! `request` turns neutral requests into bytes, and `decoder` turns bytes into neutral events.
//! Neither does IO. `client` connects to the servers, and `signature` authenticates requests.

mod blocks;
mod client;
mod completion;
mod decoder;
mod media;
mod names;
mod request;
mod signature;
mod usage;

pub(super) use self::client::client;
pub use self::decoder::ConverseDecoder;
pub use self::request::{ConverseDialect, encode_request};
