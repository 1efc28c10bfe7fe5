//! Makes the clients of servers with the Responses API.

use std::sync::Arc;

use super::decoder::ResponsesDecoder;
use super::request::{Dialect, encode_request};
use crate::address::{KeyHeader, Protocol, SettingsError};
use crate::capabilities::ProviderCapabilities;
use crate::client::{Decoder, HttpModel, Shared, Wire};
use crate::settings::{CapSettings, ProviderSettings};
use agent::ports::ModelRequest;
use values::ids::IdSource;

const PROTOCOL: Protocol = Protocol {
    base: "https://api.openai.com/v1",
    version: "",
    path: &["responses"],
    key: KeyHeader::Bearer,
    headers: &[],
};

/// Makes the client of a provider.
pub(crate) fn client(settings: &ProviderSettings, shared: Shared) -> Result<HttpModel, SettingsError> {
    HttpModel::new(settings, shared, &PROTOCOL, |url| Dialect {
        provider: settings.name.clone(),
        max_output_tokens: settings.max_output_tokens,
        capabilities: ProviderCapabilities::new(settings, url),
    })
}

impl Wire for Dialect {
    fn encode(&self, request: &ModelRequest, stream: bool) -> Vec<u8> {
        encode_request(request, self, stream)
    }

    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        Box::new(ResponsesDecoder::new(&self.provider, content_type, caps, ids))
    }
}
