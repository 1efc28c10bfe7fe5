//! The figures of the queue, for the metrics.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use store::queue::QueueFigures;
use store::{Store, StoreError};

/// How long the figures are used.
const MAX_AGE: Duration = Duration::from_secs(10);
/// How long reading them may take. The other metrics do not wait longer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The figures of the queue, read from the store at most once in ten seconds.
#[derive(Debug, Default)]
pub(super) struct QueueReading(Mutex<Option<(Instant, Option<QueueFigures>)>>);

impl QueueReading {
    /// Returns the figures; `None` if the store can't be read now.
    pub(super) async fn figures(&self, store: &dyn Store) -> Option<QueueFigures> {
        let mut last = self.0.lock().await;
        if let Some((_, figures)) = last.filter(|(read, _)| read.elapsed() < MAX_AGE) {
            return figures;
        }
        let read = timeout(TIMEOUT, store.queue_figures()).await;
        let read = read.unwrap_or_else(|elapsed| Err(StoreError::late("read queue figures", elapsed)));
        if let Err(error) = &read {
            let error = error as &dyn std::error::Error;
            tracing::debug!(error, "the figures of the queue can't be read");
        }
        let figures = read.ok();
        *last = Some((Instant::now(), figures));
        figures
    }
}
