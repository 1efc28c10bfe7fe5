//! Clients of model providers, behind the agent's port `Model`.
//!
//! Each protocol is an encoder and a decoder without IO. A thin client joins them to the network.
//! Protocols share the HTTP client, retries, server-sent events and errors. This is the only module
//! that knows the providers' JSON.

mod retry;
mod settings;
mod sse;

mod address;
mod aws_events;
mod blocks;
mod body;
mod calls;
mod capabilities;
mod capability_settings;
mod client;
mod decoder;
mod delta;
mod encode;
mod ending;
mod envelope;
mod errors;
mod fault;
mod files;
mod names;
mod opaque;
mod openai_usage;
mod parameters;
mod room;
mod schema;
mod sources;
mod strays;
mod target;
mod transport;
mod turns;
mod wire;

pub mod anthropic;
pub mod bedrock;
pub mod gemini;
pub mod openai_chat;
pub mod openai_responses;
pub mod scripted;

mod catalog;

pub use self::address::SettingsError;
pub use self::capabilities::ProviderCapabilities;
pub use self::capability_settings::{Capabilities, Files, Roles};
pub use self::catalog::{Catalog, CatalogError};
pub use self::client::Decoder;
pub use self::names::IdRule;
pub use self::retry::{Attempt, AttemptError, Pauses, Retry, TokioPauses};
pub use self::settings::{
    AwsCredentials, AwsSettings, CapSettings, ClientSettings, ErrorWords, MaxTokensField, ProviderKind,
    ProviderSettings, RetrySettings, TimeoutSettings,
};
pub use self::sse::{EventTooLarge, Frame, SseDecoder};
pub use self::transport::{Transport, TransportError};
