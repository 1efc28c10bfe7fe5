//! `/mcp`: agents as tools and sessions as resources, for clients of the Model Context Protocol.
//!
//! The endpoint is stateless. Every request is served alone, by any replica: it needs no session of
//! the protocol, and the store or a signed `requestState` has the data for later requests.
//!
//! ```text
//! endpoint.rs   origin, body, limits        what /v1 checks, too
//! message.rs    form, method, scope         a JSON-RPC error, or a problem
//! rmcp          versions, headers           stateless streamable HTTP
//! handler.rs    one method per kind of request ─▶ tools.rs, call.rs, tasks.rs, resources.rs
//! call.rs       POST /v1/runs as a tool: starter ─▶ progress.rs ─▶ outcome.rs
//! ```

mod accept;
mod endpoint;
mod handler;
mod message;
mod server;

mod call;
mod outcome;
mod progress;
mod run_request;
mod start;
mod tasks;
mod tools;
mod trace;

mod forms;
mod questions;
mod request_state;

mod resource_address;
mod resources;

mod errors;

pub(super) use self::endpoint::serve_mcp;
