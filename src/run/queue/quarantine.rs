//! Isolates suspected poison runs: starts at most one of them at a time, so that it does not take
//! other runs down.
//!
//! A run is suspected after two attempts that no worker finished. It counts as harmless once it has
//! worked for a minute.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

/// How long a run is kept apart: one that has worked for so long is most likely not what ended its workers, and others are waiting.
const WATCHED: Duration = Duration::from_mins(1);

/// The last such run that this process has begun.
#[derive(Debug, Default)]
pub(in crate::run) struct Quarantine(Mutex<Option<(Instant, Weak<Isolated>)>>);

/// Kept as long as the run is at work.
#[derive(Debug)]
pub(super) struct Isolated;

impl Quarantine {
    /// Tells whether another may begin.
    pub(super) fn is_free(&self) -> bool {
        let last = self.last();
        last.as_ref()
            .is_none_or(|(begun, run)| run.strong_count() == 0 || begun.elapsed() >= WATCHED)
    }

    /// Notes that one begins.
    pub(super) fn enter(&self) -> Arc<Isolated> {
        let isolated = Arc::new(Isolated);
        *self.last() = Some((Instant::now(), Arc::downgrade(&isolated)));
        isolated
    }

    fn last(&self) -> MutexGuard<'_, Option<(Instant, Weak<Isolated>)>> {
        // The only change is an assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_is_watched_at_a_time_until_it_ends_or_has_lived_for_a_minute() {
        let quarantine = Quarantine::default();
        assert!(quarantine.is_free());
        let first = quarantine.enter();
        advance(WATCHED / 2).await;
        assert!(!quarantine.is_free());
        drop(first);
        assert!(quarantine.is_free());
        let _second = quarantine.enter();
        assert!(!quarantine.is_free());
        advance(WATCHED).await;
        assert!(quarantine.is_free());
    }
}
