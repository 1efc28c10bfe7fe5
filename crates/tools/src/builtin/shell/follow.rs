//! Follows a background job for the time of a call.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, sleep};

use super::report::{with_notes, with_output};
use super::transcript::{EMIT_INTERVAL, Transcript, complete_length};
use agent::ports::{ToolContext, ToolError};
use values::clock::Deadline;
use workspace::checkout::SkippedFiles;
use workspace::environment::{Job, JobEnd};

/// Waits for the end of a job, at most for a time and until the run is stopped, and emits its
/// output meanwhile. Then finds the files that it has written. Returns the text for the model: the
/// unread output, and the state of the job. So does the error if the files can't be read.
pub(super) async fn follow(job: &Job, at_most: Duration, context: &ToolContext) -> Result<String, ToolError> {
    let mut transcript = Transcript::default();
    let mut over = pin!(async {
        tokio::select! {
            () = job.ended() => (),
            () = sleep(at_most) => (),
            () = context.cancellation.cancelled() => (),
        }
    });
    let mut ticks = tokio::time::interval(EMIT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = &mut over => break,
            _ = ticks.tick() => {
                add_unread(&mut transcript, job);
                transcript.emit(context);
            }
        }
    }
    // The next call reads the output after this moment, and the end after that output.
    let end = job.end();
    add_unread(&mut transcript, job);
    match context.environment.refresh().await {
        Ok(skipped) => Ok(report(job, end, transcript.finish(context), &skipped)),
        Err(error) => {
            let cause = &error as &dyn std::error::Error;
            tracing::warn!(error = cause, "the files of background jobs can't be read");
            // The error killed the job.
            let end = job.end();
            add_unread(&mut transcript, job);
            let report = report(job, end, transcript.finish(context), &SkippedFiles::default());
            Err(ToolError::new(with_output(&error, &report)))
        }
    }
}

fn report(job: &Job, end: Option<JobEnd>, output: String, skipped: &SkippedFiles) -> String {
    let id = &job.id;
    let note = match end {
        Some(end) => format!("{id} has ended after {:.1} s: {}", end.after.as_secs_f64(), end.how),
        None => format!("{id} has been running for {:.0} s", job.age().as_secs_f64()),
    };
    with_notes(output, "(no new output)", Some(note), skipped)
}

/// Adds the unread output, after a line about its dropped part.
fn add_unread(transcript: &mut Transcript, job: &Job) {
    let unread = job.take_output(complete_length);
    if unread.dropped > 0 {
        let note = format!(
            "[{} bytes before this are lost, since the jobs of this run had printed too much that was not read]\n",
            unread.dropped
        );
        transcript.add(note.as_bytes());
    }
    transcript.add(&unread.bytes);
}

/// Returns the time until the time of the run is spent. `None` if it has no limit.
pub(super) fn time_left(context: &ToolContext) -> Option<Duration> {
    context.deadline.as_ref().map(Deadline::time_left)
}
