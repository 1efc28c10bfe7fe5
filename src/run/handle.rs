//! The caller's side of a run.

use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::event_stream::{EventReceiver, event_stream};
use super::live::Follower;
use super::outcome::Failure;
use super::request::OnDisconnect;
use crate::ids::{RunId, SessionId};
use crate::record::{RunEvent, RunMode, RunRecord, RunStatus, RunSummary};

/// Follows a run. Dropping it before the end tells the run that the caller went away.
#[derive(Debug)]
pub struct RunHandle {
    /// Names the run.
    pub run_id: RunId,
    /// Names the session that the run publishes.
    pub session_id: SessionId,
    begun: RunSummary,
    events: Option<EventReceiver>,
    result: oneshot::Receiver<Arc<RunRecord>>,
    caller: Caller,
}

/// Stands for the caller while it is there.
#[derive(Debug)]
struct Caller {
    cancellation: CancellationToken,
    on_disconnect: OnDisconnect,
}

impl Drop for Caller {
    fn drop(&mut self) {
        // A run that has ended does not notice.
        if self.on_disconnect == OnDisconnect::Cancel {
            self.cancellation.cancel();
        }
    }
}

impl RunHandle {
    /// Makes the two sides of a run that begins.
    pub(super) fn pair(
        begun: RunSummary,
        on_disconnect: OnDisconnect,
        cancellation: CancellationToken,
    ) -> (Self, Follower) {
        let (result_sender, result) = oneshot::channel();
        let (event_sender, events) = event_stream();
        let streams = begun.mode == RunMode::Stream;
        let follower = Follower {
            events: streams.then_some(event_sender),
            result: result_sender,
            on_disconnect,
        };
        let handle = Self {
            run_id: begun.run_id,
            session_id: begun.session_id,
            begun,
            events: streams.then_some(events),
            result,
            caller: Caller {
                cancellation,
                on_disconnect,
            },
        };
        (handle, follower)
    }

    /// Waits for the end of the run.
    pub async fn result(self) -> RunRecord {
        let _caller = self.caller;
        if let Ok(record) = self.result.await {
            return Arc::unwrap_or_clone(record);
        }
        // Only the end of the process drops a run's task without a result.
        let error = Some(Failure::panicked().into_error());
        RunRecord {
            summary: RunSummary {
                status: RunStatus::Failed,
                error,
                ..self.begun
            },
            output: Vec::new(),
            value: None,
        }
    }

    /// Streams the events from `run.started` to the terminal one. A caller that is megabytes behind misses events in between.
    ///
    /// A run that was not begun in mode `stream` has no events to stream.
    pub fn into_events(self) -> impl Stream<Item = Arc<RunEvent>> + Send {
        let caller = self.caller;
        stream::iter(self.events).flatten().inspect(move |_| {
            // The caller is there for as long as the stream is.
            let _ = &caller;
        })
    }
}
