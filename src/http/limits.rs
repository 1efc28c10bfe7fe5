//! The address of the HTTP interface and its limits. Values only.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use url::Url;

use values::settings::{duration, integer, text};

/// The address of the service, the limits of requests, and the requests that are accepted while no
/// API key exists.
#[derive(Debug, Clone, Deserialize)]
pub struct HttpLimits {
    /// The address to serve on. Port 0 takes a free port.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// The largest body, in bytes.
    #[serde(deserialize_with = "integer::<_, 1_024, 1_073_741_824, _>")]
    pub max_body_bytes: usize,
    /// The deepest nesting of a JSON body; the parser itself stops at 128.
    #[serde(deserialize_with = "integer::<_, 8, 100, _>")]
    pub max_json_depth: usize,
    /// The most values of a JSON body: objects, arrays, strings, numbers, booleans and nulls.
    #[serde(deserialize_with = "integer::<_, 1_000, 100_000_000, _>")]
    pub max_json_values: usize,
    /// The request line and all headers together, in bytes; hyper's buffer can't be below 8 KiB.
    #[serde(deserialize_with = "integer::<_, 8_192, 1_048_576, _>")]
    pub max_header_bytes: usize,
    /// The host names that are accepted without an API key in addition to loopback, in lower case.
    #[serde(deserialize_with = "host_names")]
    pub allowed_hosts: BTreeSet<String>,
    /// The origins of web pages that may call, besides the origin of the service itself; in lower
    /// case.
    #[serde(deserialize_with = "origins")]
    pub allowed_origins: BTreeSet<String>,
    /// Whether other machines and proxies may reach the service without an API key.
    #[serde(rename = "insecure_no_auth")]
    pub is_exposed: bool,
    /// How long reading the headers of a request may take, and how long an idle connection stays
    /// open.
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub header_timeout: Duration,
    /// How long reading a body may take, and then how long any response except a run's may take.
    #[serde(deserialize_with = "duration::<10, 3_600_000, _>")]
    pub request_timeout: Duration,
    /// The bytes per second that a client must read while a response waits for it, averaged over
    /// `request_timeout`; 0 for no minimum.
    #[serde(deserialize_with = "integer::<_, 0, 1_073_741_824, _>")]
    pub min_transfer_rate: u64,
    /// The most bytes of responses that may be in the making or wait to be sent at once.
    #[serde(deserialize_with = "integer::<_, 4_194_304, { i64::MAX }, _>")]
    pub max_bytes_in_flight: usize,
    /// The most open connections. Further connections accept only probes.
    #[serde(deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    pub max_connections: usize,
    /// The most messages of one run's input.
    #[serde(deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    pub max_input_messages: usize,
    /// The time between comments on an idle event stream.
    #[serde(deserialize_with = "duration::<10, 3_600_000, _>")]
    pub keep_alive_interval: Duration,
}

/// Reads an IP address with a port; `localhost` is 127.0.0.1.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let wanted = "an IP address or localhost, and a port, such as \"127.0.0.1:8080\" or \"[::1]:8080\"";
    text(deserializer, wanted, |words| match words.strip_prefix("localhost:") {
        Some(port) => port
            .parse()
            .ok()
            .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        None => words.parse().ok(),
    })
}

/// Reads host names without ports, in lower case.
fn host_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.' | b':');
    let is_name = |name: &str| {
        let is_address = name.parse::<IpAddr>().is_ok();
        !name.is_empty() && name.bytes().all(allowed) && (is_address || !name.contains(':'))
    };
    let names = BTreeSet::<String>::deserialize(deserializer)?;
    if let Some(wrong) = names.iter().find(|name| !is_name(name)) {
        let wanted = "host names or IP addresses without ports, such as \"agents.example.org\"";
        return Err(D::Error::invalid_value(Unexpected::Str(wrong), &wanted));
    }
    Ok(names.iter().map(|name| name.to_ascii_lowercase()).collect())
}

/// Reads the origins of web pages as browsers send them, in lower case.
fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    let is_origin = |origin: &String| {
        let url = Url::parse(origin);
        url.is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == *origin)
    };
    let origins = BTreeSet::<String>::deserialize(deserializer)?;
    let origins: BTreeSet<String> = origins.iter().map(|origin| origin.to_ascii_lowercase()).collect();
    if let Some(wrong) = origins.iter().find(|origin| !is_origin(origin)) {
        let wanted = "origins of web pages, such as \"https://app.example.org\" or \"http://localhost:6274\"";
        return Err(D::Error::invalid_value(Unexpected::Str(wrong), &wanted));
    }
    Ok(origins)
}
