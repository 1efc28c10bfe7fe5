//! The limits of the HTTP interface. Values only; the composition root chooses them.

use std::collections::BTreeSet;
use std::time::Duration;

/// What a request may cost, and which may come while there is no API key.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// The largest body, in bytes.
    pub max_body_bytes: usize,
    /// The deepest nesting of a JSON body.
    pub max_json_depth: usize,
    /// The most values of a JSON body: objects, arrays, strings, numbers, booleans and nulls.
    pub max_json_values: usize,
    /// The request line and all headers together, in bytes.
    pub max_header_bytes: usize,
    /// The host names, in lower case, that are accepted without an API key, beside those of
    /// loopback.
    pub allowed_hosts: BTreeSet<String>,
    /// Whether others than this machine may reach the service without an API key, also by a proxy.
    pub is_exposed: bool,
    /// How long the headers of a request may take, and an idle connection may stay open.
    pub header_timeout: Duration,
    /// How long reading a body may take, and then every response but that of a run.
    pub request_timeout: Duration,
    /// The bytes per second that a client must read while a response waits for it, over a
    /// `request_timeout`; 0 asks for nothing.
    pub min_transfer_rate: u64,
    /// The bytes of responses that may be made or wait to be sent at once.
    pub max_bytes_in_flight: usize,
    /// The most open connections. Further ones can only probe.
    pub max_connections: usize,
    /// The most messages of one run's input.
    pub max_input_messages: usize,
    /// The time between comments on an idle event stream.
    pub keep_alive_interval: Duration,
}
