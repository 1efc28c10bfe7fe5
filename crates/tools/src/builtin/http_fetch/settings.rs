//! The settings of `http_fetch`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use net::outgoing::{HeaderValue, HttpMethod};
use values::settings::{duration, integer, text};

/// How long the executor waits beyond the timeout, so that the tool's own error comes first.
const GRACE: Duration = Duration::from_secs(1);

/// The settings of `http_fetch`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HttpFetchSettings {
    /// The permitted methods.
    #[serde(deserialize_with = "methods")]
    pub methods: BTreeSet<HttpMethod>,
    /// How long a whole call may take, with all redirects.
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub timeout: Duration,
    /// The most redirects of a call.
    #[serde(deserialize_with = "integer::<_, 0, 20, _>")]
    pub max_redirects: usize,
    /// The most bytes of a response that are read, decompressed.
    #[serde(deserialize_with = "integer::<_, 1_024, 67_108_864, _>")]
    pub max_response_bytes: usize,
    /// The most bytes of text that a call returns.
    #[serde(skip)]
    pub max_text_bytes: usize,
    /// How many bytes of text a call returns if it does not ask for a number.
    #[serde(rename = "text_bytes", deserialize_with = "integer::<_, 256, 67_108_864, _>")]
    pub default_text_bytes: usize,
    /// The header `User-Agent`; `None` for the service's own.
    #[serde(deserialize_with = "user_agent")]
    pub user_agent: Option<HeaderValue>,
}

impl HttpFetchSettings {
    /// Returns whether all permitted methods only read. A call may then be repeated.
    pub(super) fn is_safe(&self) -> bool {
        self.methods.iter().all(|method| method.is_safe())
    }

    pub(super) fn call_timeout(&self) -> Duration {
        self.timeout + GRACE
    }
}

fn methods<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<HttpMethod>, D::Error> {
    let methods = BTreeSet::<HttpMethod>::deserialize(deserializer)?;
    if methods.is_empty() {
        return Err(D::Error::custom("names no method, such as \"GET\""));
    }
    Ok(methods)
}

fn user_agent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HeaderValue>, D::Error> {
    text(deserializer, "printable ASCII, such as \"my-agents/1.0\"", |words| {
        let words = words.trim();
        let is_printable = words.chars().all(|c| (' '..='~').contains(&c));
        let value = HeaderValue::from_str(words).ok().filter(|_| is_printable)?;
        Some((!words.is_empty()).then_some(value))
    })
}
