//! The protocols, with samples of each for the tests that all decoders share.

mod anthropic;
mod bedrock;
mod gemini;
mod openai_chat;
mod openai_responses;

use models::{CapSettings, Decoder, ProviderKind, ProviderSettings};
use serde_json::Value;

use crate::wires;

/// Makes the decoder of an answer that is a stream or one body.
pub type Make = fn(Option<&str>, CapSettings) -> Box<dyn Decoder>;

/// Samples of a protocol.
#[derive(Debug)]
pub struct Samples {
    pub name: &'static str,
    pub make: Make,
    /// Bodies and events with `@` at the position of a value inside which the decoder reads.
    pub nests: &'static [&'static str],
    /// Events, and one body, with `@` at the position of a list or an object that is as large as it
    /// likes.
    pub lists: (&'static [&'static str], &'static str),
    /// Small frames, of which an answer has as many as it may, the last of several ones again and
    /// again; `@` stands for the number of the frame.
    pub small_frames: &'static [&'static [&'static str]],
    /// Makes a body with calls of tools of these names.
    pub calls: fn(&[Value]) -> Value,
    /// Makes a delta of text with many fields that nobody reads.
    pub delta: fn() -> Vec<u8>,
    /// How many allocations such a delta takes. One is its text. The others are those of
    /// libraries: `serde_json` allocates a few bytes when it skips a value inside a value, and the
    /// crate of AWS copies the headers and the payload of a message.
    pub delta_allocations: u64,
}

pub const ALL: [Samples; 5] = [
    openai_chat::SAMPLES,
    anthropic::SAMPLES,
    openai_responses::SAMPLES,
    gemini::SAMPLES,
    bedrock::SAMPLES,
];

/// The name and the decoder of each protocol.
pub const DECODERS: [(&str, Make); 5] = [
    (ALL[0].name, ALL[0].make),
    (ALL[1].name, ALL[1].make),
    (ALL[2].name, ALL[2].make),
    (ALL[3].name, ALL[3].make),
    (ALL[4].name, ALL[4].make),
];

/// Makes the decoder of a protocol, which splits off the thoughts in a text.
fn decoder(kind: ProviderKind, content_type: Option<&str>, caps: CapSettings) -> Box<dyn Decoder> {
    let settings = ProviderSettings {
        think_tags: Some(true),
        ..wires::settings("p", kind)
    };
    wires::decoder(&settings, content_type, caps)
}
