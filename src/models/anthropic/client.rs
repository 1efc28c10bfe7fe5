//! Makes the clients of servers with the Anthropic Messages API.

use std::sync::Arc;

use super::decoder::MessagesDecoder;
use super::media;
use super::request::{MessagesDialect, encode_request};
use crate::agent::ports::ModelRequest;
use crate::ids::IdSource;
use crate::message::Message;
use crate::models::address::{KeyHeader, Protocol, SettingsError};
use crate::models::client::{Decoder, HttpModel, Shared, Wire};
use crate::models::settings::{CapSettings, ProviderSettings};

const PROTOCOL: Protocol = Protocol {
    base: "https://api.anthropic.com",
    version: "v1",
    path: &["messages"],
    key: KeyHeader::Named("x-api-key"),
    headers: &[("anthropic-version", "2023-06-01")],
};

/// Makes the client of a provider.
pub(in crate::models) fn client(settings: &ProviderSettings, shared: Shared) -> Result<HttpModel, SettingsError> {
    HttpModel::new(settings, shared, &PROTOCOL, |_| MessagesDialect {
        provider: settings.name.clone(),
        max_output_tokens: settings.max_output_tokens,
    })
}

impl Wire for MessagesDialect {
    fn encode(&self, request: &ModelRequest, stream: bool) -> Vec<u8> {
        encode_request(request, self, stream)
    }

    fn header(&self, request: &ModelRequest) -> Option<(&'static str, &'static str)> {
        let has_file = |message: &Message| {
            let of_results = message.tool_results().flat_map(|result| &result.content);
            message
                .content
                .iter()
                .chain(of_results)
                .any(|part| media::is_stored_at(part, &self.provider))
        };
        let has_files = request.messages.iter().any(|message| has_file(message));
        has_files.then_some(("anthropic-beta", "files-api-2025-04-14"))
    }

    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        Box::new(MessagesDecoder::new(&self.provider, content_type, caps, ids))
    }
}
