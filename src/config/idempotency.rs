//! `[idempotency]`: how long idempotency keys are retained.

use std::time::Duration;

use serde::Deserialize;

use super::values::duration;

/// How long requests that carry an idempotency key are known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdempotencyConfig {
    /// From the first request with a key on; after it the key is free again.
    #[serde(deserialize_with = "duration::<1_000, 31_536_000_000, _>")]
    pub retention: Duration,
}
