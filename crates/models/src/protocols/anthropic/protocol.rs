//! The addresses of the Anthropic Messages API, its encoder and its decoder.

use std::sync::Arc;

use super::decoder::MessagesDecoder;
use super::encoder::encode_request;
use super::media;
use crate::address::{AddressRules, KeyHeader};
use crate::protocol::{Decoder, Dialect, Protocol, Wire};
use crate::settings::CapSettings;
use agent::ports::ModelRequest;
use values::ids::IdSource;
use values::message::Message;
use values::session::Fold;

/// The protocol.
pub(crate) static PROTOCOL: Protocol = Protocol {
    address: AddressRules {
        base: "https://api.anthropic.com",
        version: "v1",
        path: &["messages"],
        key: KeyHeader::Named("x-api-key"),
        headers: &[("anthropic-version", "2023-06-01")],
    },
    wire: |settings, url| Box::new(Messages(Dialect::new(settings, url))),
};

/// The encoding for one provider.
#[derive(Debug)]
struct Messages(Dialect);

impl Wire for Messages {
    fn encode(&self, request: &ModelRequest, stream: bool) -> Vec<u8> {
        encode_request(request, &self.0, stream)
    }

    fn header(&self, request: &ModelRequest) -> Option<(&'static str, &'static str)> {
        let files = request.messages.fold(StoredFiles::new(&self.0.provider));
        files.exist.then_some(("anthropic-beta", "files-api-2025-04-14"))
    }

    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        Box::new(MessagesDecoder::new(&self.0.provider, content_type, caps, ids))
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
        let results = message.tool_results().flat_map(|result| &result.content);
        let mut parts = message.content.iter().chain(results);
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
