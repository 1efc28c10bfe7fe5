//! Clients of model providers behind the port of the agent. Each protocol is a decoder and an encoder without IO, joined to the
//! network by a thin client. The only place that knows reqwest and the providers' JSON.

mod retry;
mod settings;
mod sse;

mod transport;

pub mod openai_chat;
pub mod scripted;

mod catalog;

pub use self::catalog::{Catalog, CatalogError};
pub use self::retry::{Attempt, Failure, Pauses, Retry, TokioPauses};
pub use self::settings::{
    CapSettings, ClientSettings, MaxTokensField, ProviderKind, ProviderSettings, RetrySettings, TimeoutSettings,
};
pub use self::sse::{EventTooLarge, SseDecoder, SseEvent};
pub use self::transport::{Transport, TransportError};
