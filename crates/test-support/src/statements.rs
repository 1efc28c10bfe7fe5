//! Counts the statements that a store sends, as its driver logs them.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Counts statements while it listens. What begins a transaction is not among them, nor what wakes
/// workers, once for many operations.
#[derive(Debug, Clone, Default)]
pub struct Statements {
    count: Arc<AtomicUsize>,
    /// The tables of which a counted statement names at least one; empty to count all statements.
    tables: &'static [&'static str],
}

impl Statements {
    /// Counts only those that name one of these tables: a running service sends others of its own.
    pub fn of(tables: &'static [&'static str]) -> Self {
        Self {
            tables,
            ..Self::default()
        }
    }

    /// Returns how many there were since it was asked last.
    pub fn taken(&self) -> usize {
        self.count.swap(0, Ordering::SeqCst)
    }
}

impl<S: tracing::Subscriber> Layer<S> for Statements {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != "sqlx::query" {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        if text.0.contains("pg_notify") {
            return;
        }
        if self.tables.is_empty() || self.tables.iter().any(|table| text.0.contains(table)) {
            self.count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// All fields of an event.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        write!(self.0, "{value:?} ").unwrap();
    }
}
