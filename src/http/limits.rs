//! The limits of the HTTP interface. Values only; the composition root chooses them.

use std::collections::BTreeSet;
use std::time::Duration;

/// The limits of requests, and the requests that are accepted while no API key exists.
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
    /// The host names that are accepted without an API key in addition to loopback, in lower case.
    pub allowed_hosts: BTreeSet<String>,
    /// Whether other machines and proxies may reach the service without an API key.
    pub is_exposed: bool,
    /// How long reading the headers of a request may take, and how long an idle connection stays
    /// open.
    pub header_timeout: Duration,
    /// How long reading a body may take, and then how long any response except that of a run may
    /// take.
    pub request_timeout: Duration,
    /// The bytes per second that a client must read while a response waits for it, averaged over
    /// `request_timeout`; 0 for no minimum.
    pub min_transfer_rate: u64,
    /// The most bytes of responses that may be in the making or wait to be sent at once.
    pub max_bytes_in_flight: usize,
    /// The most open connections. Further connections accept only probes.
    pub max_connections: usize,
    /// The most messages of one run's input.
    pub max_input_messages: usize,
    /// The time between comments on an idle event stream.
    pub keep_alive_interval: Duration,
}
