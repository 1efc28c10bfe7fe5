//! The way of events from a run to its caller. It never blocks the run, and what waits for a slow caller is bounded in bytes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::mpsc;

use crate::agent::AgentEvent;
use crate::record::{RunEvent, RunEventPayload};

/// Bytes of events that may wait for a caller before it counts as gone.
const MAX_WAITING: usize = 16 << 20;
/// What an event weighs besides its text.
const EVENT_BYTES: usize = 512;

/// The run's end.
#[derive(Debug)]
pub(super) struct EventSender {
    events: mpsc::UnboundedSender<Arc<RunEvent>>,
    waiting: Arc<AtomicUsize>,
}

/// The caller's end.
#[derive(Debug)]
pub(super) struct EventReceiver {
    events: mpsc::UnboundedReceiver<Arc<RunEvent>>,
    waiting: Arc<AtomicUsize>,
}

/// The caller is too far behind; the event was not sent.
#[derive(Debug)]
pub(super) struct Overrun;

/// Makes both ends.
pub(super) fn event_stream() -> (EventSender, EventReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::<AtomicUsize>::default();
    let sender = EventSender {
        events: sender,
        waiting: Arc::clone(&waiting),
    };
    (
        sender,
        EventReceiver {
            events: receiver,
            waiting,
        },
    )
}

impl EventSender {
    /// Sends an event. A terminal one always goes out; a caller that has left misses nothing.
    pub(super) fn send(&self, event: Arc<RunEvent>) -> Result<(), Overrun> {
        let weight = weight(&event.payload);
        let waiting = self.waiting.fetch_add(weight, Ordering::Relaxed);
        if waiting + weight > MAX_WAITING && !event.payload.is_terminal() {
            self.waiting.fetch_sub(weight, Ordering::Relaxed);
            return Err(Overrun);
        }
        // Nobody listens any more when this fails.
        let _ = self.events.send(event);
        Ok(())
    }
}

impl Stream for EventReceiver {
    type Item = Arc<RunEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Arc<RunEvent>>> {
        let event = std::task::ready!(self.events.poll_recv(context));
        if let Some(event) = &event {
            self.waiting.fetch_sub(weight(&event.payload), Ordering::Relaxed);
        }
        Poll::Ready(event)
    }
}

fn weight(payload: &RunEventPayload) -> usize {
    let text = match payload {
        RunEventPayload::Agent(AgentEvent::MessageDelta { text, .. } | AgentEvent::ReasoningDelta { text, .. }) => {
            text.len()
        }
        RunEventPayload::Agent(AgentEvent::ToolCallDelta { arguments, .. }) => arguments.len(),
        RunEventPayload::Agent(AgentEvent::ToolCallCompleted { arguments, content, .. }) => {
            arguments.len()
                + content
                    .iter()
                    .filter_map(|part| part.as_text())
                    .map(str::len)
                    .sum::<usize>()
        }
        _ => 0,
    };
    EVENT_BYTES + text
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;
    use crate::clock::{Clock as _, SystemClock};
    use crate::ids::{IdSource as _, RunId, UuidV7Source};

    fn delta(sequence: u64, length: usize) -> Arc<RunEvent> {
        let event = AgentEvent::MessageDelta {
            step_number: 1,
            text: "x".repeat(length),
            refusal: false,
        };
        let run_id = RunId::from_uuid(UuidV7Source.next_uuid());
        Arc::new(RunEvent {
            sequence,
            run_id,
            time: SystemClock.now(),
            payload: RunEventPayload::Agent(event),
        })
    }

    #[test]
    fn many_small_events_wait_and_a_flood_does_not() {
        let (sender, mut receiver) = event_stream();
        for sequence in 0..20_000 {
            sender.send(delta(sequence, 12)).unwrap();
        }
        let flood = (0..20_000)
            .map(|sequence| sender.send(delta(sequence, 12)))
            .filter(Result::is_err)
            .count();
        assert!(flood > 0, "what waits is not bounded");
        for sequence in 0..20_000 {
            assert_eq!(receiver.next().now_or_never().unwrap().unwrap().sequence, sequence);
        }
        sender.send(delta(0, 12)).unwrap();
    }
}
