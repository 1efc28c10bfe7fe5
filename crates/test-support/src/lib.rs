//! Models, tools, servers and databases that behave as a test wants, for the tests of several
//! packages. Only tests may depend on this crate.
//!
//! A feature has the name of the crate whose tests need its modules, beside those of the service.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that meets what it does not expect fails, and says loudly what it leaves out"
)]
#![expect(clippy::new_without_default, reason = "tests have one way to make a thing")]

pub mod environment;
pub mod languages;
pub mod logs;
pub mod statements;
pub mod wait;

pub mod clock;
pub mod gate;
pub mod internals;
pub mod noise;
pub mod ports;
pub mod processors;
pub mod proxy;
pub mod raw_server;
pub mod workspaces;

pub mod execution_ports;
pub mod fake_model;
pub mod fake_tool;
pub mod model_request;
pub mod provider_rules;
pub mod recorder;

#[cfg(feature = "board")]
pub mod live_run;
#[cfg(feature = "board")]
pub mod redis_server;

#[cfg(feature = "models")]
pub mod bedrock_frames;
#[cfg(feature = "models")]
pub mod error_answers;
#[cfg(feature = "models")]
pub mod gemini_chunks;
#[cfg(feature = "models")]
mod model_requests;
#[cfg(feature = "models")]
pub mod model_server;
#[cfg(feature = "models")]
pub mod samples;
#[cfg(feature = "models")]
pub mod small_frames;
#[cfg(feature = "models")]
pub mod wire_rules;
#[cfg(feature = "models")]
pub mod wires;

#[cfg(feature = "net")]
pub mod dns;

#[cfg(feature = "store")]
mod azurite;
#[cfg(feature = "store")]
pub mod databases;
#[cfg(feature = "store")]
pub mod deliveries;
#[cfg(feature = "store")]
pub mod drafts;
#[cfg(feature = "store")]
pub mod full_store;
#[cfg(feature = "store")]
pub mod object_server;
#[cfg(feature = "store")]
pub mod outages;
