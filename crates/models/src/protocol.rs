//! A protocol over HTTP: the rules of its addresses, the encoder of its requests, the decoder of
//! its responses. No IO. `protocols/mod.rs` lists the protocols.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::Url;
use reqwest::header::HeaderMap;

use super::address::AddressRules;
use super::capabilities::ProviderCapabilities;
use super::capability_settings::Capabilities;
use super::retry::AttemptError;
use super::settings::{CapSettings, ProviderKind, ProviderSettings};
use super::target::Target;
use agent::ports::{ModelEvent, ModelRequest, StructuredOutput};
use values::clock::Timestamp;
use values::ids::IdSource;

/// A protocol that providers speak over HTTP.
#[derive(Debug)]
pub(super) struct Protocol {
    /// The URLs and headers of requests.
    pub(super) address: AddressRules,
    /// Makes the encoding for the provider at an address.
    pub(super) wire: fn(&ProviderSettings, &Url) -> Box<dyn Wire>,
}

/// The encoding of a protocol, for the requests to one provider.
pub trait Wire: Send + Sync + fmt::Debug {
    /// Returns the address of a request, made from the provider's address.
    fn url(&self, base: &Url, _request: &ModelRequest, _stream: bool) -> Url {
        base.clone()
    }

    /// Encodes a request for a streamed response or for one body. Its schemas are reduced.
    fn encode(&self, request: &ModelRequest, stream: bool) -> Vec<u8>;

    /// Adds authentication headers that depend on the request and the time.
    fn authorize(
        &self,
        _headers: &mut HeaderMap,
        _url: &Url,
        _body: &Bytes,
        _now: Timestamp,
    ) -> Result<(), AttemptError> {
        Ok(())
    }

    /// Makes the decoder of one response. The declared content type is only a hint. Calls without
    /// an id get one from `ids`.
    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder>;

    /// Returns an additional header that only this request needs.
    fn header(&self, _request: &ModelRequest) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns how the provider is asked for structured output.
    fn structured_output(&self) -> StructuredOutput {
        StructuredOutput::Native
    }
}

/// Decodes one response: bytes in, events out. It does no IO and never panics.
pub trait Decoder: Send {
    /// Takes the next bytes and appends the events that they complete.
    fn push(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), AttemptError>;

    /// Takes the end of the bytes and appends the last events.
    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError>;

    /// Returns whether the completion is complete; further bytes are ignored.
    fn is_done(&self) -> bool;

    /// Returns whether the provider has sent the finish reason. After it, a lost connection loses
    /// nothing.
    fn is_finished(&self) -> bool;
}

/// The differences between providers of one protocol.
#[derive(Debug)]
pub(super) struct Dialect {
    /// The provider's configured name: its fields go back to it alone.
    pub(super) provider: String,
    /// The most output tokens that the provider accepts in a request, if known.
    pub(super) max_output_tokens: Option<u64>,
    kind: ProviderKind,
    capabilities: ProviderCapabilities,
    /// The last model and its capabilities, which take long to look up.
    last: Mutex<Option<(String, Capabilities)>>,
}

impl Dialect {
    /// Makes the dialect of the provider at an address.
    pub(super) fn new(settings: &ProviderSettings, url: &Url) -> Self {
        Self {
            provider: settings.name.clone(),
            max_output_tokens: settings.max_output_tokens,
            kind: settings.kind,
            capabilities: ProviderCapabilities::new(settings, url),
            last: Mutex::default(),
        }
    }

    /// Returns the model that a request is for, and its limits for media.
    pub(super) fn target(&self, request: &ModelRequest) -> Target {
        Target::of(request, &self.provider, self.capabilities_of(&request.model))
    }

    fn capabilities_of(&self, model: &str) -> Capabilities {
        let mut last = self.last.lock();
        if let Some((name, can)) = &*last
            && name == model
        {
            return *can;
        }
        let can = self.capabilities.of(self.kind, model);
        *last = Some((model.to_owned(), can));
        can
    }
}
