//! `[models]`: timeouts, retries and limits of calls to model providers.

use std::time::Duration;

use serde::Deserialize;

use super::error::Fault;
use super::values::{duration, integer};

/// Timeouts, retries and limits of calls to model providers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelsConfig {
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub connect_timeout: Duration,
    /// From the sent request to the first byte of the response body.
    #[serde(deserialize_with = "duration::<10, 86_400_000, _>")]
    pub first_byte_timeout: Duration,
    /// The longest silence between two reads of a response.
    #[serde(deserialize_with = "duration::<10, 86_400_000, _>")]
    pub idle_timeout: Duration,
    #[serde(deserialize_with = "duration::<10, 86_400_000, _>")]
    pub total_timeout: Duration,
    /// Tries after the first one.
    #[serde(deserialize_with = "integer::<_, 0, 20, _>")]
    pub max_retries: u32,
    #[serde(deserialize_with = "duration::<1, 600_000, _>")]
    pub retry_base_delay: Duration,
    /// Also bounds the `Retry-After` that is waited for.
    #[serde(deserialize_with = "duration::<1, 3_600_000, _>")]
    pub retry_max_delay: Duration,
    #[serde(deserialize_with = "integer::<_, 1_024, 1_073_741_824, _>")]
    pub max_event_bytes: usize,
    #[serde(deserialize_with = "integer::<_, 1_024, 1_073_741_824, _>")]
    pub max_response_bytes: usize,
}

impl ModelsConfig {
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.retry_max_delay < self.retry_base_delay {
            let problem = "shorter than `models.retry_base_delay`";
            return Err(Fault::new(&["models", "retry_max_delay"], problem));
        }
        if self.max_response_bytes < self.max_event_bytes {
            let problem = "smaller than `models.max_event_bytes`";
            return Err(Fault::new(&["models", "max_response_bytes"], problem));
        }
        Ok(())
    }
}
