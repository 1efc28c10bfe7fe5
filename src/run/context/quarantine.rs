//! Isolates suspected poison runs: this process executes one of them at a time, so a poison run
//! does not take other suspects down.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a run is isolated. A run that has worked for so long is probably not poison, and other
/// suspects are waiting.
const WATCHED: Duration = Duration::from_mins(1);

/// The suspect that this process began last.
#[derive(Debug, Default)]
pub(in crate::run) struct Quarantine(Mutex<Option<(Instant, Weak<Isolated>)>>);

/// Held as long as the run is active.
#[derive(Debug)]
pub(in crate::run) struct Isolated;

impl Quarantine {
    /// Returns whether another suspect may begin.
    pub(in crate::run) fn is_free(&self) -> bool {
        let last = self.0.lock();
        last.as_ref()
            .is_none_or(|(begun, run)| run.strong_count() == 0 || begun.elapsed() >= WATCHED)
    }

    /// Records that a suspect begins.
    pub(in crate::run) fn enter(&self) -> Arc<Isolated> {
        let isolated = Arc::new(Isolated);
        *self.0.lock() = Some((Instant::now(), Arc::downgrade(&isolated)));
        isolated
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_suspect_is_isolated_until_it_ends_or_has_worked_for_a_minute() {
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
