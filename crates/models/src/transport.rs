//! Sends a request to a provider and reads the response within time limits. Knows HTTP, but no
//! provider's protocol.

use std::borrow::Cow;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Proxy, Response, Url};
use tokio::time::{Instant, timeout, timeout_at};

use super::retry::AttemptError;
use super::settings::{ClientSettings, TimeoutSettings};
use agent::ports::{ModelError, ModelErrorClass};
use net::http_client::{client_builder, with_body};
use values::clock::Timestamp;
use values::http_headers::parse_retry_after;

/// The HTTP client could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client for model providers can't be made")]
pub struct TransportError(#[source] Box<dyn Error + Send + Sync>);

/// The process's client of model providers.
#[derive(Debug)]
pub(super) struct Transport {
    client: Client,
    timeouts: TimeoutSettings,
}

impl Transport {
    /// Makes the client.
    pub(super) fn new(settings: &ClientSettings) -> Result<Self, TransportError> {
        Ok(Self {
            client: client(settings).map_err(TransportError)?,
            timeouts: settings.timeouts,
        })
    }

    /// Sends a body and returns the head of the response. The body follows.
    pub(super) async fn post(&self, url: Url, headers: HeaderMap, body: Bytes) -> Result<Incoming, AttemptError> {
        let start = Instant::now();
        let total = start + self.timeouts.total;
        let first_byte = (start + self.timeouts.first_byte).min(total);
        let request = self.client.post(url).headers(headers);
        let sent = with_body(request, body).send();
        let response = timeout_at(first_byte, sent)
            .await
            .map_err(|_| too_slow(first_byte_words(first_byte, total)))?;
        let response = response.map_err(network)?;
        Ok(Incoming {
            response,
            idle: self.timeouts.idle,
            first_byte: Some(first_byte),
            total,
        })
    }
}

fn client(settings: &ClientSettings) -> Result<Client, Box<dyn Error + Send + Sync>> {
    let builder = client_builder()?.connect_timeout(settings.timeouts.connect);
    let builder = match &settings.proxy {
        Some(proxy) => builder.proxy(Proxy::all(proxy)?),
        None => builder,
    };
    Ok(builder.build()?)
}

/// A response whose body is still to be read.
pub(super) struct Incoming {
    response: Response,
    idle: Duration,
    first_byte: Option<Instant>,
    total: Instant,
}

impl Incoming {
    /// Returns the status.
    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Returns the declared type of the body.
    pub(super) fn content_type(&self) -> Option<&str> {
        self.response.headers().get(CONTENT_TYPE)?.to_str().ok()
    }

    /// Returns the pause that the provider requests: `retry-after-ms`, or `Retry-After` in seconds
    /// or as an HTTP date.
    pub(super) fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        retry_after(self.response.headers(), now)
    }

    /// Drops the headers once they are read. They would hold the buffer of the connection in which
    /// they arrived, and the connection would allocate another one for the body.
    pub(super) fn drop_headers(&mut self) {
        *self.response.headers_mut() = HeaderMap::new();
    }

    /// Returns the next bytes; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, AttemptError> {
        let limit = self.first_byte.unwrap_or_else(|| Instant::now() + self.idle);
        let words = match self.first_byte {
            _ if limit >= self.total => TOTAL,
            Some(_) => FIRST_BYTE,
            None => "the provider stopped sending in the middle of its response",
        };
        let next = timeout_at(limit.min(self.total), self.response.chunk()).await;
        let bytes = next.map_err(|_| too_slow(words))?.map_err(network)?;
        self.first_byte = None;
        Ok(bytes)
    }

    /// Returns up to `limit` bytes of the body, as far as it arrives.
    pub(super) async fn read_start(mut self, limit: usize) -> Vec<u8> {
        let mut start = Vec::new();
        while let Ok(Some(bytes)) = self.next().await {
            let room = limit.saturating_sub(start.len());
            start.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if room <= bytes.len() {
                break;
            }
        }
        start
    }

    /// Reads the end of a complete response if it arrives soon, so that the connection can be
    /// reused.
    pub(super) async fn drain(&mut self) {
        const MOMENT: Duration = Duration::from_millis(5);
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        // If the server leaves the response open, only this connection is lost.
        let _ = timeout(MOMENT, rest).await;
    }
}

const FIRST_BYTE: &str = "the provider did not begin its response in time";
const TOTAL: &str = "the provider did not finish its response in time";

fn first_byte_words(first_byte: Instant, total: Instant) -> &'static str {
    if first_byte < total { FIRST_BYTE } else { TOTAL }
}

fn too_slow(words: &str) -> AttemptError {
    AttemptError::judged(ModelError::new(ModelErrorClass::Timeout, words))
}

/// Makes the error of a connection. A lost or slow connection is retried; a wrong address is not.
fn network(error: reqwest::Error) -> AttemptError {
    let (class, words, is_permanent) = if error.is_timeout() {
        let words = "the provider could not be reached in time";
        (ModelErrorClass::Timeout, words.to_owned(), false)
    } else if error.is_connect() {
        let connect_fault = connect_fault(&error);
        let cause = connect_fault
            .as_ref()
            .map(|connect_fault| format!(": {}", connect_fault.words));
        let words = format!("the provider can't be reached{}", cause.unwrap_or_default());
        let is_permanent = connect_fault.is_some_and(|connect_fault| connect_fault.is_permanent);
        (ModelErrorClass::Network, words, is_permanent)
    } else {
        let words = "the connection to the provider broke";
        (ModelErrorClass::Network, words.to_owned(), false)
    };
    let source: Arc<dyn Error + Send + Sync> = Arc::new(error.without_url());
    let error = ModelError {
        source: Some(source),
        ..ModelError::new(class, words)
    };
    if is_permanent {
        AttemptError::permanent(error)
    } else {
        AttemptError::judged(error)
    }
}

/// The reason why a connection failed.
struct ConnectFault {
    words: Cow<'static, str>,
    is_permanent: bool,
}

impl ConnectFault {
    fn permanent(words: impl Into<Cow<'static, str>>) -> Self {
        Self {
            words: words.into(),
            is_permanent: true,
        }
    }
}

/// Returns the reason why a connection failed, if it is known.
fn connect_fault(error: &reqwest::Error) -> Option<ConnectFault> {
    if error.is_dns() {
        return Some(unresolved(error));
    }
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        match error.downcast_ref::<io::Error>() {
            Some(error) if error.kind() == ErrorKind::ConnectionRefused => {
                return Some(ConnectFault::permanent("the connection was refused"));
            }
            // The TLS library uses this kind for invalid data from the other side.
            Some(error) if error.kind() == ErrorKind::InvalidData => {
                let words = "it does not speak TLS as expected, or its certificate is not trusted";
                return Some(ConnectFault::permanent(words));
            }
            // An error inside an IO error is not its source, so it is read separately.
            Some(error) => cause = error.get_ref().map(|inner| inner as _),
            None => cause = error.source(),
        }
    }
    None
}

/// Returns the reason of a failed lookup of the host. The standard library passes on only the
/// system's message, without a code.
fn unresolved(error: &reqwest::Error) -> ConnectFault {
    // The messages of glibc, musl and macOS for `EAI_NONAME` and `EAI_NODATA`, then `EAI_AGAIN`,
    // then `EAI_FAIL`.
    const UNKNOWN: [&str; 4] = [
        "not known",
        "No address associated",
        "does not resolve",
        "no usable address",
    ];
    const TEMPORARY: [&str; 2] = ["Temporary failure", "Try again"];
    const LASTING: [&str; 2] = ["Non-recoverable failure", "Unrecoverable error"];
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let message = causes.last().map(ToString::to_string).unwrap_or_default();
    let is_any = |wordings: &[&str]| wordings.iter().any(|words| message.contains(words));
    if is_any(&UNKNOWN) {
        return ConnectFault::permanent("its host is not known");
    }
    let words = if is_any(&TEMPORARY) {
        "its host can't be looked up at the moment".into()
    } else {
        let cause = message
            .strip_prefix("failed to lookup address information: ")
            .unwrap_or(&message);
        format!("its host can't be looked up: {cause}").into()
    };
    ConnectFault {
        words,
        is_permanent: is_any(&LASTING),
    }
}

/// Reads `retry-after-ms`, or `Retry-After` in seconds or as an HTTP date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1_000.0).ok();
    }
    parse_retry_after(text(RETRY_AFTER.as_str())?, now)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use reqwest::dns::{Name, Resolve, Resolving};

    use super::*;

    /// A resolver that fails each lookup with this system message.
    struct Unresolved(&'static str);

    impl Resolve for Unresolved {
        fn resolve(&self, _name: Name) -> Resolving {
            let words = format!("failed to lookup address information: {}", self.0);
            Box::pin(async move { Err(io::Error::other(words).into()) })
        }
    }

    #[tokio::test]
    async fn a_host_is_unknown_only_if_the_lookup_is_final() {
        for (words, cause, retryable) in [
            ("Name or service not known", "its host is not known", false),
            ("No address associated with hostname", "its host is not known", false),
            ("Name does not resolve", "its host is not known", false),
            (
                "Temporary failure in name resolution",
                "its host can't be looked up at the moment",
                true,
            ),
            ("Try again", "its host can't be looked up at the moment", true),
            (
                "Non-recoverable failure in name resolution",
                "its host can't be looked up: Non-recoverable failure in name resolution",
                false,
            ),
            (
                "Too many open files (os error 24)",
                "its host can't be looked up: Too many open files (os error 24)",
                true,
            ),
        ] {
            let client = client_builder().unwrap().dns_resolver(Arc::new(Unresolved(words)));
            let sent = client.build().unwrap().post("http://model.example/v1").send();
            let failure = network(sent.await.unwrap_err());
            assert_eq!(failure.error.message, format!("the provider can't be reached: {cause}"));
            assert_eq!(
                (failure.error.class, failure.retryable),
                (ModelErrorClass::Network, retryable),
                "{words}"
            );
        }
    }

    #[test]
    fn retry_after_is_read_in_every_form() {
        let now = DateTime::parse_from_rfc3339("2026-01-02T03:04:05Z").unwrap().to_utc();
        for (name, value, expected) in [
            ("retry-after", "2", Some(2_000)),
            ("retry-after", " 1.5 ", Some(1_500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "Fri, 02 Jan 2026 03:04:15 GMT", Some(10_000)),
            ("retry-after", "Fri, 02 Jan 2026 03:04:00 GMT", Some(0)),
            ("retry-after", "-1", None),
            ("retry-after", "1e300", None),
            ("retry-after", "NaN", None),
            ("retry-after", "soon", None),
            ("retry-after-ms", "inf", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(
                retry_after(&headers, now),
                expected.map(Duration::from_millis),
                "{name}: {value}"
            );
        }
        let mut both = HeaderMap::new();
        both.insert("retry-after", "7".parse().unwrap());
        both.insert("retry-after-ms", "70".parse().unwrap());
        assert_eq!(retry_after(&both, now), Some(Duration::from_millis(70)));
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
