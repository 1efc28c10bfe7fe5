//! Amazon Bedrock's Converse and `ConverseStream`.
//!
//! `request` turns neutral requests into bytes, `decoder` turns bytes into neutral events; neither does IO. `client` says how the
//! servers are reached, `signature` proves to them who asks.

mod answer;
mod blocks;
mod client;
mod conversation;
mod decoder;
mod frames;
mod media;
mod opaque;
mod request;
mod signature;
mod usage;

pub(super) use self::client::client;
pub use self::decoder::ConverseDecoder;
pub use self::request::{ConverseDialect, encode_request};
