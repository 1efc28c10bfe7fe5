//! Repeating an operation with several clients for a while, and the statistics of its times.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

/// The times of operations that ran during a window.
#[derive(Debug)]
pub(crate) struct Sample {
    /// How long the window was.
    pub(crate) window: Duration,
    times: Vec<Duration>,
}

impl Sample {
    /// Makes a sample of times that were taken elsewhere.
    pub(crate) fn new(window: Duration, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { window, times }
    }

    /// Returns the number of operations.
    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }

    /// Returns the operations per second.
    pub(crate) fn per_second(&self) -> f64 {
        count(self.times.len()) / self.window.as_secs_f64()
    }

    /// Returns the time that `percent` of the operations did not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.times.len() * percent).div_ceil(100);
        self.times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Returns the middle time.
    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }
}

/// Lets each client repeat the operation until the window ends; a client hands what one call
/// returns to its next.
pub(crate) async fn repeat<S, F, R>(clients: usize, window: Duration, operation: F) -> Result<Sample>
where
    S: Default + Send + 'static,
    F: Fn(S) -> R + Clone + Send + 'static,
    R: Future<Output = Result<S>> + Send,
{
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let operation = operation.clone();
        tasks.spawn(async move {
            let mut state = S::default();
            let mut times = Vec::new();
            while began.elapsed() < window {
                let start = Instant::now();
                state = operation(state).await?;
                times.push(start.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        times.append(&mut ended??);
    }
    Ok(Sample::new(began.elapsed(), times))
}

/// Returns the middle one of some numbers, 0 of none.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// Returns the least and the greatest of some numbers.
pub(crate) fn range(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), number| {
        (least.min(number), most.max(number))
    })
}

/// Turns a count into a number to reckon with.
#[expect(clippy::cast_precision_loss, reason = "counts of a bounded run are far below 2^52")]
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}
