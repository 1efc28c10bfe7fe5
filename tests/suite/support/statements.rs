//! Counts the statements that a store sends, as its driver logs them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Counts statements while it listens. What begins a transaction is not among them.
#[derive(Clone, Default)]
pub(crate) struct Statements(Arc<AtomicUsize>);

impl Statements {
    /// Returns how many there were since it was asked last.
    pub(crate) fn taken(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

impl<S: tracing::Subscriber> Layer<S> for Statements {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}
