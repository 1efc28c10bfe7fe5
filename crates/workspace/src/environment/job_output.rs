//! The unread output of the background jobs of a run, up to a total.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

/// The most bytes of unread output of all jobs of a run together.
const MAX_UNREAD: usize = 16 << 20;
/// Memory that is free in the middle of a run is given back in pieces of at least this size.
const MAX_SPARE: usize = 64 << 10;

/// The unread output of a run.
#[derive(Debug, Default)]
pub(super) struct RunOutput(Mutex<Outputs>);

#[derive(Debug, Default)]
struct Outputs {
    /// Counts up with each job.
    jobs: u64,
    total: usize,
    by_job: BTreeMap<u64, Output>,
}

#[derive(Debug, Default)]
struct Output {
    bytes: VecDeque<u8>,
    dropped: u64,
}

/// The unread output of a job. Dropping it forgets the output.
#[derive(Debug)]
pub(super) struct JobOutput {
    run: Arc<RunOutput>,
    job: u64,
}

/// Output that a reader has taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TakenOutput {
    /// How many bytes before it were dropped, since the jobs of the run had too much unread output.
    pub dropped: u64,
    /// The output.
    pub bytes: Vec<u8>,
}

impl RunOutput {
    /// Begins the output of a job.
    pub(super) fn job(self: &Arc<Self>) -> JobOutput {
        let mut outputs = self.0.lock();
        outputs.jobs += 1;
        let job = outputs.jobs;
        outputs.by_job.insert(job, Output::default());
        JobOutput {
            run: Arc::clone(self),
            job,
        }
    }
}

impl JobOutput {
    /// Adds output. If the run then has too much, the job with most of it loses its oldest.
    pub(super) fn add(&self, bytes: &[u8]) {
        let mut outputs = self.run.0.lock();
        let Some(own) = outputs.by_job.get_mut(&self.job) else {
            return;
        };
        own.bytes.extend(bytes);
        outputs.total += bytes.len();
        while outputs.total > MAX_UNREAD {
            let excess = outputs.total - MAX_UNREAD;
            let Some(longest) = outputs.by_job.values_mut().max_by_key(|output| output.bytes.len()) else {
                return;
            };
            let dropped = excess.min(longest.bytes.len());
            longest.bytes.drain(..dropped);
            longest.dropped += dropped as u64;
            longest.give_back();
            outputs.total -= dropped;
        }
    }

    /// Takes as many of the unread bytes as `choose_length` returns for them.
    pub(super) fn take(&self, choose_length: impl FnOnce(&[u8]) -> usize) -> TakenOutput {
        let mut outputs = self.run.0.lock();
        let Some(own) = outputs.by_job.get_mut(&self.job) else {
            return TakenOutput::default();
        };
        let unread = own.bytes.make_contiguous();
        let length = choose_length(unread).min(unread.len());
        let taken = TakenOutput {
            dropped: std::mem::take(&mut own.dropped),
            bytes: own.bytes.drain(..length).collect(),
        };
        own.give_back();
        outputs.total -= length;
        taken
    }
}

impl Drop for JobOutput {
    fn drop(&mut self) {
        let mut outputs = self.run.0.lock();
        if let Some(own) = outputs.by_job.remove(&self.job) {
            outputs.total -= own.bytes.len();
        }
    }
}

impl Output {
    /// Gives memory back that is not needed any more.
    fn give_back(&mut self) {
        let needed = self.bytes.len();
        if self.bytes.capacity() > 2 * needed + MAX_SPARE {
            self.bytes.shrink_to(needed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = 1 << 20;

    fn all(output: &JobOutput) -> (u64, usize, Option<u8>) {
        let taken = output.take(<[u8]>::len);
        (taken.dropped, taken.bytes.len(), taken.bytes.first().copied())
    }

    #[test]
    fn the_job_with_most_unread_output_loses_its_oldest() {
        let unread = Arc::<RunOutput>::default();
        let [long, short] = [unread.job(), unread.job()];
        for number in 0..20 {
            long.add(&vec![number; PIECE]);
            assert!(unread.0.lock().total <= MAX_UNREAD);
        }
        short.add(&vec![1; PIECE]);
        assert_eq!(all(&short), (0, PIECE, Some(1)));
        assert_eq!(all(&long), (5 * PIECE as u64, 15 * PIECE, Some(5)));
        assert_eq!(all(&long), (0, 0, None));
        // Two that print as much have as much.
        for _ in 0..20 {
            long.add(&vec![1; PIECE]);
            short.add(&vec![2; PIECE]);
        }
        let (long_sums, short_sums) = (all(&long), all(&short));
        assert_eq!(long_sums.0 + short_sums.0, 24 * PIECE as u64);
        assert_eq!((long_sums.1, short_sums.1), (8 * PIECE, 8 * PIECE));
    }

    #[test]
    fn memory_is_given_back_with_what_was_read_or_dropped_and_with_the_job() {
        let unread = Arc::<RunOutput>::default();
        let capacity = || {
            let outputs = unread.0.lock();
            outputs
                .by_job
                .values()
                .map(|output| output.bytes.capacity())
                .sum::<usize>()
        };
        let jobs: Vec<_> = (0..4).map(|_| unread.job()).collect();
        for job in &jobs {
            for _ in 0..8 {
                job.add(&vec![0; PIECE]);
            }
        }
        assert!(capacity() <= 2 * MAX_UNREAD + 4 * MAX_SPARE, "{}", capacity());
        drop(jobs);
        assert_eq!(capacity(), 0);
        assert_eq!(unread.0.lock().total, 0);
    }

    #[test]
    fn a_part_may_stay_unread() {
        let output = Arc::<RunOutput>::default().job();
        output.add(b"abc");
        assert_eq!(output.take(|_| 2).bytes, b"ab");
        output.add(b"d");
        assert_eq!(output.take(|_| 99).bytes, b"cd");
    }
}
