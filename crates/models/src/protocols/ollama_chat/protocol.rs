//! The address of Ollama's API, its encoder and its decoder.

use std::sync::Arc;

use super::decoder::OllamaDecoder;
use super::encoder::encode_request;
use crate::address::{AddressRules, KeyHeader};
use crate::protocol::{Decoder, Dialect, Protocol, Wire};
use crate::settings::CapSettings;
use agent::ports::ModelRequest;
use values::ids::IdSource;

/// The protocol.
pub(crate) static PROTOCOL: Protocol = Protocol {
    address: AddressRules {
        base: "http://127.0.0.1:11434",
        version: "",
        path: &["api", "chat"],
        key: KeyHeader::Bearer,
        headers: &[("accept", "application/x-ndjson, application/json")],
    },
    wire: |settings, url| Box::new(Ollama(Dialect::new(settings, url))),
};

/// The encoding for one provider.
#[derive(Debug)]
struct Ollama(Dialect);

impl Wire for Ollama {
    fn encode(&self, request: &ModelRequest, stream: bool) -> Vec<u8> {
        encode_request(request, &self.0, stream)
    }

    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        Box::new(OllamaDecoder::of_lines(&self.0.provider, content_type, caps, ids))
    }
}
