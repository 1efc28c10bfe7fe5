//! Background jobs: commands of a run that go on between its calls.
//!
//! This module knows the output and the end of jobs, not how they are run. A job ends with its
//! environment at the latest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::job_output::{JobOutput, RunOutput, TakenOutput};

/// The most ended jobs that are remembered, with the output that was not read.
const MAX_ENDED: usize = 8;
/// How long the end of an environment waits for its jobs, which are killed then. Only processes
/// that the kernel can't interrupt take as long.
const PATIENCE: Duration = Duration::from_secs(20);

/// The jobs of an environment.
#[derive(Debug, Default)]
pub struct Jobs {
    all: Mutex<Vec<Arc<Job>>>,
    /// Counts the running jobs of the run, in all its environments.
    running: Arc<AtomicUsize>,
    /// The output of those jobs.
    unread: Arc<RunOutput>,
}

/// A job, as its readers see it.
#[derive(Debug)]
pub struct Job {
    /// Names the job among the jobs of its session.
    pub id: String,
    /// The command line.
    pub command: String,
    started_at: Instant,
    cancellation: CancellationToken,
    unread: JobOutput,
    end: watch::Sender<Option<JobEnd>>,
}

/// How a job ended. No process of it is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// The end in words, such as "exit code 0".
    pub how: String,
    /// The time from its start.
    pub after: Duration,
}

/// A job, for its runner. Dropping it ends the job.
#[derive(Debug)]
pub struct RunningJob {
    job: Arc<Job>,
    running: Arc<AtomicUsize>,
    how: Option<String>,
}

impl Jobs {
    /// Returns the jobs of another environment of the same run: none yet.
    pub(super) fn of_same_run(&self) -> Self {
        Self {
            all: Mutex::default(),
            running: Arc::clone(&self.running),
            unread: Arc::clone(&self.unread),
        }
    }

    /// Adds a job, which is killed when the token is cancelled. Returns `None` if the run has as
    /// many already as it may have at the same time.
    pub fn add(
        &self,
        id: String,
        command: String,
        max_running: usize,
        cancellation: CancellationToken,
    ) -> Option<(Arc<Job>, RunningJob)> {
        let one_more = |running: usize| (running < max_running).then_some(running + 1);
        let counted = self.running.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more);
        counted.ok()?;
        let job = Arc::new(Job {
            id,
            command,
            started_at: Instant::now(),
            cancellation,
            unread: self.unread.job(),
            end: watch::Sender::new(None),
        });
        let mut jobs = self.all.lock();
        let ended = jobs.iter().filter(|job| job.end().is_some()).count();
        if ended >= MAX_ENDED
            && let Some(oldest) = jobs.iter().position(|job| job.end().is_some())
        {
            jobs.remove(oldest);
        }
        jobs.push(Arc::clone(&job));
        let running = RunningJob {
            job: Arc::clone(&job),
            running: Arc::clone(&self.running),
            how: None,
        };
        Some((job, running))
    }

    /// Forgets a job.
    pub fn remove(&self, id: &str) {
        self.all.lock().retain(|job| job.id != id);
    }

    /// Returns a job.
    pub fn find(&self, id: &str) -> Option<Arc<Job>> {
        self.all.lock().iter().find(|job| job.id == id).cloned()
    }

    /// Returns the running jobs, and the most recently ended ones.
    pub fn all(&self) -> Vec<Arc<Job>> {
        self.all.lock().clone()
    }

    /// Returns whether a process of a job may be left.
    pub fn are_running(&self) -> bool {
        self.all.lock().iter().any(|job| job.end().is_none())
    }

    /// Kills all jobs, without waiting for their ends.
    pub(super) fn cancel(&self) {
        for job in &*self.all.lock() {
            job.cancellation.cancel();
        }
    }

    /// Kills all jobs, and waits until no process of them is left.
    pub async fn stop(&self) {
        self.cancel();
        let ends = async {
            for job in self.all() {
                job.ended().await;
            }
        };
        if timeout(PATIENCE, ends).await.is_err() {
            tracing::warn!("a background job of a run could not be killed in time");
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Job {
    /// Returns how it ended, unless it runs.
    pub fn end(&self) -> Option<JobEnd> {
        self.end.borrow().clone()
    }

    /// Returns the time since its start.
    pub fn age(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// Kills it, without waiting for its end.
    pub fn cancel(&self) {
        self.cancellation.cancel();
    }

    /// Waits for its end.
    pub async fn ended(&self) {
        // It fails only without a sender, which this is.
        let _ = self.end.subscribe().wait_for(Option::is_some).await;
    }

    /// Takes the unread output. While the job runs, takes as many bytes as `complete` returns for
    /// it.
    pub fn take_output(&self, complete: impl FnOnce(&[u8]) -> usize) -> TakenOutput {
        let has_ended = self.end().is_some();
        self.unread
            .take(|unread| if has_ended { unread.len() } else { complete(unread) })
    }
}

impl RunningJob {
    /// Returns the token whose cancellation kills the job.
    pub fn cancellation(&self) -> CancellationToken {
        self.job.cancellation.clone()
    }

    /// Adds output.
    pub fn print(&self, bytes: &[u8]) {
        self.job.unread.add(bytes);
    }

    /// Ends the job. No process of it may be left.
    pub fn finish(mut self, how: String) {
        self.how = Some(how);
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        let how = self.how.take();
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.job.end.send_replace(Some(JobEnd {
            how: how.unwrap_or_else(|| "it failed with an internal error".to_owned()),
            after: self.job.age(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(jobs: &Jobs, id: &str) -> Option<(Arc<Job>, RunningJob)> {
        jobs.add(id.to_owned(), "true".to_owned(), 2, CancellationToken::new())
    }

    #[tokio::test]
    async fn the_jobs_of_a_run_are_counted_in_all_its_environments() {
        let jobs = Jobs::default();
        let subagent = jobs.of_same_run();
        let (first, running) = add(&jobs, "job-1").unwrap();
        let (_, other) = add(&subagent, "job-1").unwrap();
        assert!(add(&jobs, "job-2").is_none() && add(&subagent, "job-2").is_none());
        running.finish("exit code 0".to_owned());
        assert_eq!(first.end().unwrap().how, "exit code 0");
        assert!(!jobs.are_running() && subagent.are_running());
        let (second, running) = add(&jobs, "job-2").unwrap();
        drop((other, running));
        assert_eq!(second.end().unwrap().how, "it failed with an internal error");
        jobs.stop().await;
    }

    #[test]
    fn few_ended_jobs_are_remembered() {
        let jobs = Jobs::default();
        let (_, first) = add(&jobs, "job-0").unwrap();
        for number in 1..20 {
            let (_, running) = add(&jobs, &format!("job-{number}")).unwrap();
            running.print(b"x");
        }
        let ids: Vec<_> = jobs.all().iter().map(|job| job.id.clone()).collect();
        assert_eq!((ids.len(), ids[0].as_str(), ids[1].as_str()), (9, "job-0", "job-12"));
        drop(first);
    }

    #[test]
    fn output_is_read_once_and_whole_at_the_end() {
        let jobs = Jobs::default();
        let (job, running) = add(&jobs, "job-1").unwrap();
        running.print(b"abc");
        assert_eq!(job.take_output(|_| 2).bytes, b"ab");
        running.print(b"d");
        assert_eq!(job.take_output(|_| 99).bytes, b"cd");
        running.print(b"e");
        drop(running);
        assert_eq!(job.take_output(|_| 0).bytes, b"e");
        assert_eq!(job.take_output(|_| 0).bytes, b"");
    }

    #[test]
    fn the_unread_output_of_a_run_is_bounded_in_all_its_environments() {
        let jobs = Jobs::default();
        let subagent = jobs.of_same_run();
        let read: Vec<_> = [&jobs, &subagent]
            .into_iter()
            .map(|jobs| {
                let (job, running) = add(jobs, "job-1").unwrap();
                running.print(&vec![b'x'; 12 << 20]);
                job
            })
            .collect();
        let taken = read.iter().map(|job| job.take_output(|_| 0));
        let sums = taken.fold((0, 0), |(dropped, unread), one| {
            (dropped + one.dropped, unread + one.bytes.len())
        });
        assert_eq!(sums, (8 << 20, 16 << 20));
    }

    #[test]
    fn jobs_are_cancelled_with_their_environment() {
        let jobs = Jobs::default();
        let (_, running) = add(&jobs, "job-1").unwrap();
        drop(jobs);
        assert!(running.cancellation().is_cancelled());
    }
}
