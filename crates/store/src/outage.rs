//! Logs an outage of the store once, however many operations fail meanwhile.

use std::error::Error;

use super::error::StoreError;

/// Whether the store was unavailable at the last attempt.
#[derive(Debug, Default)]
pub struct Outage {
    is_unavailable: bool,
}

impl Outage {
    /// Logs one line when the store becomes unavailable and one when it is back. `effect` describes
    /// the consequence of the outage, such as `no webhooks are sent`.
    pub fn note<T>(&mut self, effect: &'static str, tried: &Result<T, StoreError>) {
        match tried {
            Err(error) if !self.is_unavailable => {
                tracing::warn!(effect, error = error as &dyn Error, "the store can't be used");
            }
            Ok(_) if self.is_unavailable => tracing::info!(ended = effect, "the store can be used again"),
            Ok(_) | Err(_) => (),
        }
        self.is_unavailable = tried.is_err();
    }
}
