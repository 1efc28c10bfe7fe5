//! The operations of the store.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::registration::Registration;
use ::store::{Outcome, StoreObserver};

/// The upper bounds of the durations of operations, in seconds.
const SECONDS: [f64; 6] = [0.001, 0.005, 0.01, 0.05, 0.25, 1.0];
/// The upper bounds of the sizes of batches. The committer takes at most 64 writes.
const WRITES: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Metrics of the store.
#[derive(Debug)]
pub struct StoreMetrics {
    operations: Family<Operation, Histogram, fn() -> Histogram>,
    batches: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
    outcome: &'static str,
}

impl StoreMetrics {
    pub(super) fn register(registration: &mut Registration) -> Self {
        let operations = Family::<_, _, fn() -> Histogram>::new_with_constructor(|| Histogram::new(SECONDS));
        registration.add(
            "store_operation_duration_seconds",
            &["operation", "outcome"],
            "From the call of an operation of the store to its end",
            &operations,
        );
        let batches = Histogram::new(WRITES);
        registration.add(
            "commit_batch_size",
            &[],
            "Writes in one batch of the committer",
            &batches,
        );
        Self { operations, batches }
    }
}

impl StoreObserver for StoreMetrics {
    fn operation_ended(&self, operation: &'static str, outcome: Outcome, duration: Duration) {
        let outcome = outcome.as_str();
        let operation = Operation { operation, outcome };
        self.operations
            .get_or_create(&operation)
            .observe(duration.as_secs_f64());
    }

    fn batch_begun(&self, writes: usize) {
        let writes = u32::try_from(writes).unwrap_or(u32::MAX);
        self.batches.observe(f64::from(writes));
    }
}
