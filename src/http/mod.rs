//! The HTTP interface: the only module that knows axum, status codes, JSON on the wire and
//! server-sent events.
//!
//! Decides nothing about runs. Start with `router.rs`, which shows every route. The layers around a
//! route turn a request into a `Call` (`auth.rs`). Handlers extract, call and respond. `refusal.rs`
//! turns errors into problems. `faces` has the forms of other protocols.

mod router;
mod server;

mod ag_ui;
mod agents;
mod ai_sdk;
mod approvals;
mod audit;
mod changes;
mod console;
mod deliveries;
mod docs;
mod guides;
mod health;
mod langgraph;
mod mcp;
mod me;
mod metrics;
mod openai;
mod runs;
mod service;
mod sessions;
mod spending;
mod tenant_limits;
mod threads;

mod faces;

mod accepted;
mod auth;
mod certificate;
mod guards;
mod host;
mod key_cache;
mod observe;
mod pretty;
mod readiness;
mod requester;
mod resource_metadata;
mod revocations;
mod state;
mod tls;
mod token_auth;

mod chat_history;
mod chat_start;
mod chat_thread;
mod checks;
mod codes;
mod compression;
mod conflicts;
mod connection;
mod console_sessions;
mod console_settings;
mod cookie;
mod cross_origin;
mod described;
mod described_parameters;
mod described_schemas;
mod drain;
mod event_stream;
mod face_errors;
mod face_stream;
mod file_problems;
mod frames;
mod headers;
mod http1;
mod http2;
mod idempotency;
mod in_flight;
mod input;
mod json_body;
mod json_errors;
mod json_response;
mod limits;
mod lookups;
mod mcp_settings;
mod metadata_filter;
mod openai_errors;
mod openai_settings;
mod pace;
mod paging;
mod parameters;
mod peer;
mod problem;
mod problem_groups;
mod queue_reading;
mod recent_frames;
mod refusal;
mod streams;
mod tls_settings;
mod unparsed;

pub use self::agents::AgentView;
pub use self::codes::ProblemCode;
pub use self::console_settings::ConsoleSettings;
pub use self::drain::DrainSettings;
pub use self::limits::HttpLimits;
pub use self::mcp_settings::{McpAccess, McpKeyError, McpSettings};
pub use self::openai_settings::{OpenAiAccess, OpenAiSettings, OwnTools, Seal, SealKeyError, UnsupportedTools};
pub use self::pretty::indented_json;
pub use self::problem::{FieldProblem, Problem};
pub use self::router::{Interface, interface, openapi, probe_interface};
pub use self::server::serve;
pub use self::sessions::compare::SessionDiff;
pub use self::sessions::files::view::FileEntry;
pub use self::sessions::view::SessionView;
pub use self::tls::{Reload, Tls, TlsError};
pub use self::tls_settings::{TlsClient, TlsSettings, TlsVersion};
