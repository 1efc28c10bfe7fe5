//! agent-runtime runs LLM agents over immutable sessions.
//!
//! Read the modules in the order below: first plain values, then what is built from them. Each
//! module may import only modules above it; `tests/suite/tidy` checks that. `ARCHITECTURE.md` has
//! the map.

pub mod causes;
pub mod clock;
pub mod http_headers;
pub mod ids;
pub mod json;
pub mod limits;
pub mod message;
pub mod model_parameters;
pub mod model_ref;
pub mod secret_forms;
pub mod spelling;
pub mod tenant;
pub mod usage;

pub mod egress;
pub mod fair_share;
mod http_client;
pub mod off_thread;
pub mod outgoing;
pub mod path_patterns;
pub mod sandbox;

pub mod session;
pub mod workspace;

pub mod checkout;
pub mod environment;

pub mod agent;

pub mod record;

pub mod models;
pub mod tools;
pub mod webhooks;

pub mod mcp;

pub mod board;
pub mod store;

pub mod supervision;

pub mod command_queue;
pub mod outbox;
pub mod retention;
pub mod run;

pub mod api_key;
pub mod http;

pub mod config;
pub mod lifecycle;
pub mod telemetry;

pub mod app;
pub mod cli;
