//! Clients of model providers, behind the agent's port `Model`.
//!
//! `Catalog` is the way in: it makes the clients of the configured providers. Each protocol is an
//! encoder and a decoder without IO (`protocols/`), and `client.rs` joins them to the network. All
//! protocols share the HTTP client, retries, server-sent events and errors.
//!
//! Only this crate knows the providers' JSON. It stores nothing, reads no configuration, and knows
//! no runs, tools or sessions: it turns one request into the events of one response.
//!
//! | looking for | go to |
//! |---|---|
//! | the list of protocols, and what each must define | `protocols/mod.rs`, `protocol.rs` |
//! | the client: attempts, retries, the connection | `client.rs`, `retry.rs`, `transport.rs` |
//! | bytes of a response to events | `body.rs`, `decoder.rs`, `sse.rs` |
//! | messages to bytes of a request | `conversation.rs`, `encode.rs`, `names.rs` |
//! | what a model or a protocol accepts | `capabilities.rs`, `target.rs`, `schema/` |
//! | errors and finish reasons of providers | `errors/`, `ending.rs` |
//! | the model that plays a script | `scripted/` |

mod retry;
mod settings;
mod sse;

mod address;
mod blocks;
mod body;
mod calls;
mod capabilities;
mod capability_settings;
mod client;
mod conversation;
mod decoder;
mod delta;
mod encode;
mod ending;
mod envelope;
mod errors;
mod fault;
mod fields;
mod files;
mod names;
mod opaque;
mod openai_usage;
mod parameters;
mod protocol;
mod protocols;
mod room;
mod schema;
mod scripted;
mod sources;
mod strays;
mod target;
mod transport;

mod catalog;

pub use self::address::SettingsError;
pub use self::capability_settings::{Capabilities, Files, Roles};
pub use self::catalog::{Catalog, CatalogError};
pub use self::protocol::{Decoder, Wire};
pub use self::protocols::wire;
pub use self::retry::AttemptError;
pub use self::scripted::{Script, ScriptError, Scripted};
pub use self::settings::{
    AwsCredentials, AwsSettings, CapSettings, ClientSettings, ErrorWords, ProviderKind, ProviderSettings,
    RetrySettings, TimeoutSettings,
};
pub use self::sse::{EventTooLarge, Frame, SseDecoder};
pub use self::transport::TransportError;

/// Whether this build has the protocol of Bedrock.
pub const HAS_BEDROCK: bool = cfg!(feature = "bedrock");
