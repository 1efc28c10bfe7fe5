//! `[http]`: the listener and its limits.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::values::{address, duration, host_names, integer, origins, path, variable_name};

/// The listener and the limits of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// Port 0 takes a free one.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// Serves beyond loopback without any API key.
    pub insecure_no_auth: bool,
    /// Host names that are accepted without any API key, besides those of loopback; in lower case.
    #[serde(deserialize_with = "host_names")]
    pub allowed_hosts: BTreeSet<String>,
    #[serde(deserialize_with = "integer::<_, 1_024, 1_073_741_824, _>")]
    pub max_body_bytes: usize,
    /// Levels of JSON nesting; the parser itself stops at 128.
    #[serde(deserialize_with = "integer::<_, 8, 100, _>")]
    pub max_json_depth: usize,
    /// Values of one JSON body, nested ones included; a decoded one takes up to about 700 bytes of
    /// memory.
    #[serde(deserialize_with = "integer::<_, 1_000, 100_000_000, _>")]
    pub max_json_values: usize,
    /// Bytes of the request line and all headers together; hyper's buffer can't be below 8 KiB.
    #[serde(deserialize_with = "integer::<_, 8_192, 1_048_576, _>")]
    pub max_header_bytes: usize,
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub header_timeout: Duration,
    /// Bounds reading a request, and every response but that of a run.
    #[serde(deserialize_with = "duration::<10, 3_600_000, _>")]
    pub request_timeout: Duration,
    /// Bytes per second that a client must read while a response waits for it.
    #[serde(deserialize_with = "integer::<_, 0, 1_073_741_824, _>")]
    pub min_transfer_rate: u64,
    /// Bytes of responses that may be made or wait to be sent at once; a tenant may have half of
    /// them.
    #[serde(deserialize_with = "integer::<_, 4_194_304, { i64::MAX }, _>")]
    pub max_bytes_in_flight: usize,
    #[serde(deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    pub max_connections: usize,
    /// Time between comments on an idle event stream.
    #[serde(deserialize_with = "duration::<10, 3_600_000, _>")]
    pub keep_alive_interval: Duration,
    /// The endpoint of the Model Context Protocol.
    pub mcp: McpServerConfig,
}

/// Agents as tools of the Model Context Protocol.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServerConfig {
    pub enabled: bool,
    /// The origins of web pages that may call, in lower case.
    #[serde(deserialize_with = "origins")]
    pub allowed_origins: BTreeSet<String>,
    /// The environment variable that holds the key of request states.
    #[serde(default, deserialize_with = "variable_name")]
    pub state_key_env: Option<String>,
    /// A file that holds the key; it wins over `state_key_env`.
    #[serde(default, deserialize_with = "path")]
    pub state_key_file: Option<PathBuf>,
    /// The key that was found when the configuration was loaded.
    #[serde(skip)]
    pub state_key: Option<SecretString>,
}
