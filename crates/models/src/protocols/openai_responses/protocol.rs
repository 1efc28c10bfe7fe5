//! The addresses of the Responses API, its encoder and its decoder.

use std::sync::Arc;

use super::decoder::ResponsesDecoder;
use super::encoder::encode_request;
use crate::address::{AddressRules, KeyHeader};
use crate::protocol::{Decoder, Dialect, Protocol, Wire};
use crate::settings::CapSettings;
use agent::ports::ModelRequest;
use values::ids::IdSource;

/// The protocol.
pub(crate) static PROTOCOL: Protocol = Protocol {
    address: AddressRules {
        base: "https://api.openai.com/v1",
        version: "",
        path: &["responses"],
        key: KeyHeader::Bearer,
        headers: &[],
    },
    wire: |settings, url| Box::new(Responses(Dialect::new(settings, url))),
};

/// The encoding for one provider.
#[derive(Debug)]
struct Responses(Dialect);

impl Wire for Responses {
    fn encode(&self, request: &ModelRequest, stream: bool) -> Vec<u8> {
        encode_request(request, &self.0, stream)
    }

    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        Box::new(ResponsesDecoder::new(&self.0.provider, content_type, caps, ids))
    }
}
