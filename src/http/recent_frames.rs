//! The newest frames of one run, which its readers share.
//!
//! The readers of a live run send the same event within a moment, so the first one encodes it. A
//! reader that reads much later encodes again, and evicts no frame that the others share.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;

use agent::record::{RunEvent, event_weight};

/// The most bytes of frames and their events that are retained: half of the bytes of unsent events
/// that a single reader may hold.
const MAX_BYTES: usize = 128 << 10;

/// The newest frames of a run, in the order in which they were encoded.
#[derive(Debug, Default)]
pub(super) struct RecentFrames {
    frames: VecDeque<(Arc<RunEvent>, Bytes)>,
    bytes: usize,
}

impl RecentFrames {
    /// Returns the frame of an event. Encodes the event if its frame is not retained. Retains the
    /// frame unless the event is older than the last one retained.
    pub(super) fn get(&mut self, event: &Arc<RunEvent>, encode: impl FnOnce(&RunEvent) -> Bytes) -> Bytes {
        let mut newest_first = self.frames.iter().rev();
        if let Some((_, frame)) = newest_first.find(|(known, _)| is_same(known, event)) {
            return frame.clone();
        }
        let frame = encode(event);
        let last = self.frames.back();
        if last.is_some_and(|(last, _)| event.sequence < last.sequence) {
            return frame;
        }
        self.bytes += bytes_of(event, &frame);
        self.frames.push_back((Arc::clone(event), frame.clone()));
        while self.bytes > MAX_BYTES
            && let Some((event, frame)) = self.frames.pop_front()
        {
            self.bytes -= bytes_of(&event, &frame);
        }
        frame
    }
}

/// Returns whether the events are equal. Each read of Redis or of the store decodes them anew.
fn is_same(known: &Arc<RunEvent>, event: &Arc<RunEvent>) -> bool {
    known.sequence == event.sequence && (Arc::ptr_eq(known, event) || known == event)
}

fn bytes_of(event: &RunEvent, frame: &Bytes) -> usize {
    event_weight(&event.payload) + frame.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(sequence: u64, text: &str) -> Arc<RunEvent> {
        let event = json!({
            "sequence": sequence, "run_id": "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11",
            "time": "2026-01-01T00:00:00Z", "type": "message.delta", "data": {"step_number": 1, "text": text},
        });
        Arc::new(serde_json::from_value(event).unwrap())
    }

    /// Frames that are filled by an encoder that counts.
    #[derive(Default)]
    struct Counted {
        frames: RecentFrames,
        encoded: usize,
    }

    impl Counted {
        fn get(&mut self, event: &Arc<RunEvent>) -> Bytes {
            self.frames.get(event, |event| {
                self.encoded += 1;
                serde_json::to_vec(event).unwrap().into()
            })
        }
    }

    #[test]
    fn an_event_is_encoded_for_its_first_reader() {
        let mut counted = Counted::default();
        let (first, second) = (event(1, "a"), event(2, "b"));
        for _ in 0..100 {
            for event in [&first, &second, &event(2, "b")] {
                assert_eq!(counted.get(event), serde_json::to_vec(event).unwrap());
            }
        }
        assert_eq!(counted.encoded, 2);
    }

    #[test]
    fn an_event_of_another_attempt_is_another_event() {
        let mut counted = Counted::default();
        for (text, encoded) in [("a", 1), ("b", 2), ("a", 2), ("b", 2)] {
            let event = event(1, text);
            assert_eq!(counted.get(&event), serde_json::to_vec(&event).unwrap());
            assert_eq!(counted.encoded, encoded);
        }
    }

    #[test]
    fn the_newest_frames_that_fit_are_retained() {
        let mut counted = Counted::default();
        let events: Vec<_> = (1..=1_000)
            .map(|sequence| event(sequence, &"\u{1}".repeat(500)))
            .collect();
        for event in &events {
            counted.get(event);
            let retained = counted.frames.frames.iter();
            let bytes: usize = retained.map(|(event, frame)| bytes_of(event, frame)).sum();
            assert!(bytes == counted.frames.bytes && bytes <= MAX_BYTES, "{bytes}");
        }
        let retained = counted.frames.frames.len();
        assert!((20..=40).contains(&retained), "{retained}");
        for event in &events[1_000 - retained..] {
            counted.get(event);
        }
        assert_eq!(counted.encoded, 1_000);
        counted.get(&events[999 - retained]);
        assert_eq!(counted.encoded, 1_001);
    }

    #[test]
    fn a_reader_of_old_events_evicts_no_newer_ones() {
        let mut counted = Counted::default();
        let events: Vec<_> = (1..=1_000)
            .map(|sequence| event(sequence, &"\u{1}".repeat(500)))
            .collect();
        let (old, newest) = events.split_at(990);
        for event in newest {
            counted.get(event);
        }
        for event in old {
            assert_eq!(counted.get(event), serde_json::to_vec(event).unwrap());
        }
        assert_eq!(counted.encoded, 1_000);
        for event in newest {
            assert_eq!(counted.get(event), serde_json::to_vec(event).unwrap());
        }
        assert_eq!(counted.encoded, 1_000);
    }
}
