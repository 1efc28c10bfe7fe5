//! Sends a request, again if it failed and may be repeated, within the timeout of the call.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use tokio::time::Instant;

use super::super::answer::Answer;
use super::super::content_type::ContentType;
use net::outgoing::{HeaderMap, OutgoingClient, OutgoingError, OutgoingRequest, within};
use values::clock::Clock;
use values::http_headers::parse_retry_after;

/// The longest pause before the first retry; it doubles with each further one.
const BASE_DELAY: Duration = Duration::from_millis(250);
/// The longest pause, unless the server asks for a longer one.
const MAX_DELAY: Duration = Duration::from_secs(8);

/// How requests are sent.
#[derive(Debug)]
pub(super) struct Attempts {
    pub(super) client: OutgoingClient,
    pub(super) clock: Arc<dyn Clock>,
    /// How long all attempts together may take.
    pub(super) timeout: Duration,
    pub(super) max_retries: usize,
    pub(super) max_response_bytes: usize,
}

/// A response, and when the server wants the request again.
struct Attempted {
    answer: Answer,
    retry_after: Option<Duration>,
}

impl Attempts {
    /// Returns the first response that need not be repeated, or the outcome of the last attempt.
    pub(super) async fn run(&self, request: OutgoingRequest) -> Result<Answer, OutgoingError> {
        let end = Instant::now() + self.timeout;
        let mut delays = ExponentialBuilder::default()
            .with_factor(2.0)
            .with_min_delay(BASE_DELAY)
            .with_max_delay(MAX_DELAY)
            .with_max_times(self.max_retries)
            .with_jitter()
            .build();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let attempted = within(left, self.attempt(request.clone())).await;
            let asked = match &attempted {
                Ok(attempted) if may_pass(attempted.answer.status) => attempted.retry_after,
                Err(error) if error.may_pass() => None,
                _ => return attempted.map(|attempted| attempted.answer),
            };
            let pause = delays.next().map(|delay| delay.max(asked.unwrap_or_default()));
            let left = end.saturating_duration_since(Instant::now());
            match pause.filter(|pause| *pause < left) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return attempted.map(|attempted| attempted.answer),
            }
        }
    }

    async fn attempt(&self, request: OutgoingRequest) -> Result<Attempted, OutgoingError> {
        let response = self.client.send(request).await?;
        let (host, status) = (response.target().host().to_owned(), response.status());
        let retry_after = self.retry_after(response.headers());
        let content = ContentType::of(response.headers());
        let body = response.read(self.max_response_bytes).await?;
        let answer = Answer {
            host,
            status,
            content,
            body,
        };
        Ok(Attempted { answer, retry_after })
    }

    fn retry_after(&self, headers: &HeaderMap) -> Option<Duration> {
        let value = headers.get("retry-after")?;
        parse_retry_after(value.to_str().ok()?, self.clock.now())
    }
}

/// Returns whether the same request may get another status later.
fn may_pass(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}
