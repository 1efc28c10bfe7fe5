//! The settings of `http_fetch`.

use std::collections::BTreeSet;
use std::time::Duration;

use net::outgoing::{HeaderValue, HttpMethod};

/// How long the executor waits beyond the timeout, so that the tool's own error comes first.
const GRACE: Duration = Duration::from_secs(1);

/// What `http_fetch` may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpFetchSettings {
    /// The permitted methods.
    pub methods: BTreeSet<HttpMethod>,
    /// How long a whole call may take, with all redirects.
    pub timeout: Duration,
    /// The most redirects of a call.
    pub max_redirects: usize,
    /// The most bytes of a response that are read, decompressed.
    pub max_response_bytes: usize,
    /// The most bytes of text that a call returns.
    pub max_text_bytes: usize,
    /// How many bytes of text a call returns if it does not ask for a number.
    pub default_text_bytes: usize,
    /// The header `User-Agent`; `None` for that of the service.
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
