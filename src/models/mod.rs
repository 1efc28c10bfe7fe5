//! Clients of model providers behind the port of the agent. Each protocol is a decoder and an encoder without IO, joined to the
//! network by a thin client. The only place that knows reqwest and the providers' JSON.

mod retry;
mod settings;
mod sse;

mod address;
mod body;
mod calls;
mod client;
mod errors;
mod files;
mod framed;
mod names;
mod parameters;
mod room;
mod sources;
mod structured;
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
pub use self::catalog::{Catalog, CatalogError};
pub use self::client::Decoder;
pub use self::names::IdRule;
pub use self::retry::{Attempt, Failure, Pauses, Retry, TokioPauses};
pub use self::settings::{
    AwsCredentials, AwsSettings, CapSettings, ClientSettings, MaxTokensField, ProviderKind, ProviderSettings,
    RetrySettings, TimeoutSettings,
};
pub use self::sse::{EventTooLarge, SseDecoder, SseEvent};
pub use self::transport::{Transport, TransportError};
