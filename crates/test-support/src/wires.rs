//! The encoders and decoders of protocols, without a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent::ports::ModelRequest;
use models::{CapSettings, Capabilities, Decoder, ProviderKind, ProviderSettings, Roles, Wire};
use uuid::Uuid;
use values::ids::IdSource;

/// The UUIDs 1, 2, 3 and so on.
#[derive(Debug, Default)]
pub struct Counted(AtomicU64);

impl IdSource for Counted {
    fn next_uuid(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1)
    }
}

/// The settings of a provider at an address that has no rules of its own.
#[must_use]
pub fn settings(provider: &str, kind: ProviderKind) -> ProviderSettings {
    ProviderSettings {
        base_url: Some("https://h.example/v1".to_owned()),
        ..ProviderSettings::new(provider, kind)
    }
}

/// The settings of a server of chat completions that accepts roles in any order.
#[must_use]
pub fn chat_settings(provider: &str) -> ProviderSettings {
    let any_order = Capabilities {
        roles: Some(Roles::Any),
        ..Capabilities::default()
    };
    ProviderSettings {
        capabilities: Arc::new([("*".to_owned(), any_order)].into()),
        ..settings(provider, ProviderKind::OpenAiChat)
    }
}

/// Encodes a request to a provider.
#[must_use]
pub fn encode_request(request: &ModelRequest, settings: &ProviderSettings, stream: bool) -> Vec<u8> {
    wire(settings).encode(request, stream)
}

/// Makes the decoder of a response of a provider. Equal bytes get equal ids.
#[must_use]
pub fn decoder(settings: &ProviderSettings, content_type: Option<&str>, caps: CapSettings) -> Box<dyn Decoder> {
    wire(settings).decoder(content_type, caps, Arc::new(Counted::default()))
}

fn wire(settings: &ProviderSettings) -> Box<dyn Wire> {
    models::wire(settings).unwrap().unwrap()
}
