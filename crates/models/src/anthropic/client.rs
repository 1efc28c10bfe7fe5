//! Makes the clients of servers with the Anthropic Messages API.

use std::sync::Arc;

use super::decoder::MessagesDecoder;
use super::media;
use super::request::{MessagesDialect, encode_request};
use crate::address::{KeyHeader, Protocol, SettingsError};
use crate::capabilities::ProviderCapabilities;
use crate::client::{Decoder, HttpModel, Shared, Wire};
use crate::settings::{CapSettings, ProviderSettings};
use agent::ports::ModelRequest;
use values::ids::IdSource;
use values::message::Message;
use values::session::Fold;

const PROTOCOL: Protocol = Protocol {
    base: "https://api.anthropic.com",
    version: "v1",
    path: &["messages"],
    key: KeyHeader::Named("x-api-key"),
    headers: &[("anthropic-version", "2023-06-01")],
};

/// Makes the client of a provider.
pub(crate) fn client(settings: &ProviderSettings, shared: Shared) -> Result<HttpModel, SettingsError> {
    HttpModel::new(settings, shared, &PROTOCOL, |url| MessagesDialect {
        provider: settings.name.clone(),
        max_output_tokens: settings.max_output_tokens,
        capabilities: ProviderCapabilities::new(settings, url),
    })
}

impl Wire for MessagesDialect {
    fn encode(&self, request: &ModelRequest, stream: bool) -> Vec<u8> {
        encode_request(request, self, stream)
    }

    fn header(&self, request: &ModelRequest) -> Option<(&'static str, &'static str)> {
        let files = request.messages.fold(StoredFiles::new(&self.provider));
        files.exist.then_some(("anthropic-beta", "files-api-2025-04-14"))
    }

    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        Box::new(MessagesDecoder::new(&self.provider, content_type, caps, ids))
    }
}

/// Whether messages have files that are stored at a provider.
#[derive(Debug, Clone)]
struct StoredFiles {
    provider: Arc<str>,
    exist: bool,
}

impl StoredFiles {
    fn new(provider: &str) -> Self {
        Self {
            provider: provider.into(),
            exist: false,
        }
    }

    fn are_in(&self, message: &Message) -> bool {
        let of_results = message.tool_results().flat_map(|result| &result.content);
        let mut parts = message.content.iter().chain(of_results);
        parts.any(|part| media::is_stored_at(part, &self.provider))
    }
}

impl Fold for StoredFiles {
    fn is_like(&self, other: &Self) -> bool {
        self.provider == other.provider
    }

    fn extend<'a>(&mut self, mut messages: impl Iterator<Item = &'a Message> + Clone) {
        self.exist = self.exist || messages.any(|message| self.are_in(message));
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}
