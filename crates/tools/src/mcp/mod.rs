//! MCP servers of others, whose tools agents call (Model Context Protocol, revisions 2024-11-05 to
//! 2026-07-28).
//!
//! ```text
//! definition.rs   a server, as the operator describes it
//! servers.rs      the servers that agents list: the port `ToolServers`
//! offer.rs        the tools of a run: names, patterns, pinned definitions
//! server.rs       one server: its connections, one for each tenant
//! connection.rs   one connection: requests with limits of time, and their cancellation
//! requests.rs     the requests of a connection; finds the one that a message belongs to
//! observer.rs     progress of a request, and questions of the server, for its caller
//! incoming/       reads all that a server sends: removes secrets, mends parts that can't be read,
//!                 parses beside the workers
//! endpoint.rs     how a server is reached: over HTTP (`http/`) or as a process (`stdio/`)
//! list.rs         lists the tools of a server within limits
//! tool.rs         a call; `outcome.rs` reads its result, `input.rs` asks the caller for input
//! extras.rs       tools for resources and prompts
//! ```
//!
//! A server is not trusted: it may hang, die, lie or send without end. All of this is at most an
//! error of a call.

mod definition;
mod servers;

mod offer;
mod server;

mod connection;
mod endpoint;
mod handler;
mod http;
mod incoming;
mod observed;
mod observer;
mod requests;
mod stdio;

mod caller;
mod extras;
mod input;
mod list;
mod listing;
mod naming;
mod outcome;
mod tool;
mod unavailable;

mod request_error;

pub use self::definition::{McpDefinition, OnChange};
pub use self::servers::McpServers;
