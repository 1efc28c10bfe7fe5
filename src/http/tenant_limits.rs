//! Limits of a tenant: the rate of its requests, and the number of its readers.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};

use super::codes::ProblemCode;
use super::problem::Problem;
use super::state::Api;
use values::limits::{RateStanding, TenantShare};
use values::tenant::TenantId;

// draft-ietf-httpapi-ratelimit-headers-10
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
// The same figures as OpenAI names them.
const OPENAI_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit-requests");
const OPENAI_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining-requests");
const OPENAI_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset-requests");
/// When a caller may retry after a reader is refused.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Handles a request of the tenant, or refuses it if the rate is exceeded. The headers of each
/// response state the rest of the quota, for clients of OpenAI also in their form.
pub(super) async fn limit_rate(
    api: &Api,
    tenant: &TenantId,
    is_openai: bool,
    answer: impl Future<Output = Response>,
) -> Response {
    let standing = api.runs.count_request(tenant).await;
    let refusal = standing.as_ref().and_then(too_often);
    let mut response = match refusal {
        None => answer.await,
        Some(problem) => problem.into_response(),
    };
    let Some(standing) = standing else { return response };
    let own = [(RATE_LIMIT_POLICY, policy(&standing)), (RATE_LIMIT, left(&standing))];
    let of_openai = is_openai.then(|| {
        [
            (OPENAI_LIMIT, standing.rate.burst.to_string()),
            (OPENAI_REMAINING, standing.remaining.to_string()),
            (OPENAI_RESET, format!("{}s", seconds_until_full(&standing))),
        ]
    });
    for (name, text) in own.into_iter().chain(of_openai.into_iter().flatten()) {
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn too_often(standing: &RateStanding) -> Option<Problem> {
    let (rate, wait) = (standing.rate, standing.wait?);
    let words = format!(
        "the tenant has made more requests than {} per second and {} at once",
        rate.per_second, rate.burst
    );
    Some(Problem::new(ProblemCode::RateLimited, words).with_retry_after(wait))
}

/// Writes the policy: the burst as the quota, and its refill time as the window.
fn policy(standing: &RateStanding) -> String {
    let burst = standing.rate.burst.get();
    format!("\"requests\";q={burst};w={}", seconds(standing, burst))
}

fn left(standing: &RateStanding) -> String {
    let until = match standing.wait {
        Some(wait) => wait.as_millis().div_ceil(1_000).max(1).to_string(),
        None => seconds_until_full(standing).to_string(),
    };
    format!("\"requests\";r={};t={until}", standing.remaining)
}

/// Returns the seconds after which the whole quota is available again.
fn seconds_until_full(standing: &RateStanding) -> u32 {
    seconds(standing, standing.rate.burst.get().saturating_sub(standing.remaining))
}

/// Returns the seconds after which the rate allows `requests` more requests.
fn seconds(standing: &RateStanding, requests: u32) -> u32 {
    requests.div_ceil(standing.rate.per_second.get()).max(1)
}

impl Api {
    /// Counts one more reader of the tenant, which follows a run or changes, or waits for a run.
    /// Dropping the share ends the count.
    pub(super) fn take_reader(&self, tenant: &TenantId) -> Result<TenantShare, Problem> {
        let limit = self.runs.limits.of(tenant).readers;
        self.readers.take(tenant, limit).ok_or_else(|| {
            let limit = limit.unwrap_or_default();
            let words = format!(
                "{limit} readers of the tenant follow runs or changes, or wait for runs, as many as it may have"
            );
            Problem::new(ProblemCode::TooManyReaders, words).with_retry_after(RETRY_AFTER)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use values::limits::RequestRate;

    #[test]
    fn headers_show_what_is_left_and_when_it_is_back() {
        let number = |number| NonZeroU32::new(number).unwrap();
        let standing = |per_second, burst, remaining, wait: Option<u64>| RateStanding {
            rate: RequestRate {
                per_second: number(per_second),
                burst: number(burst),
            },
            remaining,
            wait: wait.map(Duration::from_millis),
        };
        for (standing, said) in [
            (
                standing(10, 100, 99, None),
                r#""requests";q=100;w=10 "requests";r=99;t=1"#,
            ),
            (
                standing(10, 100, 0, None),
                r#""requests";q=100;w=10 "requests";r=0;t=10"#,
            ),
            (
                standing(10, 5, 0, Some(1_001)),
                r#""requests";q=5;w=1 "requests";r=0;t=2"#,
            ),
            (standing(1, 1, 0, Some(1)), r#""requests";q=1;w=1 "requests";r=0;t=1"#),
        ] {
            assert_eq!(format!("{} {}", policy(&standing), left(&standing)), said);
        }
    }
}
