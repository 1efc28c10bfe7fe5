//! The stored forms of live runs and events: versioned JSON. A run has two parts, so that lists do
//! not read payloads.

use std::io;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::LiveRun;
use agent::record::{RunEvent, RunSummary, StepRecord};
use values::json::{Object, Value};
use values::message::Message;
use values::session::OpenCall;

/// The version that this code writes, and the newest version that it reads.
const VERSION: u32 = 1;

/// The most bytes of a run's steps, input and output that are shared. For larger ones, other
/// replicas see only the summary. A larger value could exceed the timeout of each write, so that no
/// run would be shared any more.
const MAX_WORK_BYTES: usize = 1 << 20;

/// The most bytes of an event that is shared.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// A live run as it is stored.
#[derive(Debug)]
pub(super) struct StoredRun {
    pub(super) summary: Vec<u8>,
    /// Empty if it is too large to be shared.
    pub(super) work: Vec<u8>,
}

#[derive(Serialize)]
struct Writing<T> {
    version: u32,
    value: T,
}

#[derive(Deserialize)]
struct Reading<'a> {
    version: u32,
    #[serde(borrow)]
    value: &'a RawValue,
}

#[derive(Serialize)]
struct WorkWriting<'a> {
    input: &'a [Message],
    output: &'a [Arc<Message>],
    value: &'a Option<Value>,
    steps: &'a [Arc<StepRecord>],
    open_calls: &'a [OpenCall],
    echo: &'a Option<Arc<Object>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Work {
    input: Arc<[Message]>,
    output: Vec<Arc<Message>>,
    value: Option<Value>,
    steps: Vec<Arc<StepRecord>>,
    open_calls: Vec<OpenCall>,
    echo: Option<Arc<Object>>,
}

/// Encodes a run. If that fails, logs the error and returns `None`.
pub(super) fn encode(run: &LiveRun) -> Option<StoredRun> {
    let work = WorkWriting {
        input: &run.input,
        output: &run.output,
        value: &run.value,
        steps: &run.steps,
        open_calls: &run.open_calls,
        echo: &run.echo,
    };
    let written = write(&run.summary, usize::MAX).and_then(|summary| Ok((summary, write(work, MAX_WORK_BYTES)?)));
    match written {
        Ok((summary, work)) => Some(StoredRun {
            summary: summary.unwrap_or_default(),
            work: work.unwrap_or_default(),
        }),
        Err(error) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "a live run can't be shared");
            None
        }
    }
}

/// Decodes a run without its steps and output. Returns `None` if it is missing or this version
/// can't read it.
pub(super) fn decode_summary(summary: Option<&[u8]>) -> Option<LiveRun> {
    read::<RunSummary>(summary?).map(LiveRun::begun)
}

/// Decodes a whole run. Steps that are not shared, or can't be read, are left out.
pub(super) fn decode(summary: Option<&[u8]>, work: Option<&[u8]>) -> Option<LiveRun> {
    let run = decode_summary(summary)?;
    let work = work.filter(|work| !work.is_empty());
    let Work {
        input,
        output,
        value,
        steps,
        open_calls,
        echo,
    } = work.and_then(read).unwrap_or_default();
    Some(LiveRun {
        input,
        output,
        value,
        open_calls,
        echo,
        steps,
        ..run
    })
}

/// Encodes an event. Returns no bytes if it is too large or can't be encoded. The empty entry
/// occupies its number, and readers stop before it.
pub(super) fn encode_event(event: &RunEvent) -> Vec<u8> {
    let written = write(event, MAX_EVENT_BYTES).unwrap_or_else(|error| {
        tracing::debug!(error = &error as &dyn std::error::Error, "an event can't be shared");
        None
    });
    written.unwrap_or_default()
}

/// Decodes an event. Returns `None` if it was not shared or this version can't read it.
pub(super) fn decode_event(event: &[u8]) -> Option<RunEvent> {
    if event.is_empty() {
        return None;
    }
    read(event)
}

/// Encodes a value. Returns `None` if it exceeds the limit, and stops there.
fn write<T: Serialize>(value: T, max_bytes: usize) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let mut bounded = Bounded {
        bytes: Vec::new(),
        max_bytes,
    };
    let value = Writing {
        version: VERSION,
        value,
    };
    match serde_json::to_writer(&mut bounded, &value) {
        Ok(()) => Ok(Some(bounded.bytes)),
        // Only the bound causes an IO error.
        Err(error) if error.is_io() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Collects written bytes. Fails beyond its bound.
struct Bounded {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.max_bytes - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let value = serde_json::from_slice(bytes).and_then(|stored: Reading<'_>| {
        let readable = stored.version <= VERSION;
        readable.then(|| serde_json::from_str(stored.value.get())).transpose()
    });
    match value {
        Ok(Some(value)) => Some(value),
        Ok(None) => {
            tracing::debug!("what a newer replica shows is skipped");
            None
        }
        Err(error) => {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "what can't be read on the board is skipped"
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde::Serializer;
    use serde_json::json;

    use super::*;

    fn run_of(output: &[&str]) -> LiveRun {
        let id = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";
        let time = "2026-01-01T00:00:00Z";
        let message = |text| json!({"id": id, "role": "assistant", "content": [{"type": "text", "text": text}], "created_at": time});
        let summary = json!({
            "run_id": id, "session_id": id, "agent": "demo", "model": "demo/scripted", "mode": "sync",
            "status": "running", "usage": {}, "step_count": 0, "metadata": {}, "created_at": time,
        });
        let output: Vec<_> = output.iter().map(message).collect();
        LiveRun {
            output: serde_json::from_value(output.into()).unwrap(),
            value: Some(json!({"celsius": 21})),
            ..LiveRun::begun(serde_json::from_value(summary).unwrap())
        }
    }

    #[test]
    fn a_value_is_written_no_further_than_its_bound() {
        struct Counted<'a>(&'a Cell<usize>);
        impl Serialize for Counted<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.set(self.0.get() + 1);
                "a step".serialize(serializer)
            }
        }
        let written = Cell::new(0);
        let steps: Vec<_> = (0..1000).map(|_| Counted(&written)).collect();
        let whole = write(&steps, usize::MAX).unwrap().unwrap();
        assert_eq!(written.replace(0), 1000);
        assert_eq!(write(&steps, whole.len()).unwrap(), Some(whole.clone()));
        written.set(0);
        assert_eq!(write(&steps, whole.len() / 10).unwrap(), None);
        assert!(written.get() <= 100, "{}", written.get());
    }

    #[test]
    fn a_run_is_shared_without_its_steps_where_they_are_too_large() {
        let (small, large) = (run_of(&["hi"]), run_of(&["hi", &"x".repeat(MAX_WORK_BYTES)]));
        let decoded = |stored: StoredRun| decode(Some(&stored.summary), Some(&stored.work)).unwrap();
        assert_eq!(decoded(encode(&small).unwrap()), small);
        assert_eq!(decoded(encode(&large).unwrap()), LiveRun::begun(large.summary.clone()));
    }

    #[test]
    fn every_event_is_decoded_as_it_was_encoded() {
        let id = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";
        let time = "2026-01-01T00:00:00.000001Z";
        let content = json!([
            {"type": "text", "text": "hi", "citations": ["{\"url\": 1e2}"]},
            {"type": "opaque", "provider": "mistral", "raw": "{\"a\":  1.10}"},
            {"type": "hologram", "depth": 3, "far": 18_446_744_073_709_551_615_u64, "near": 0.1},
        ]);
        let mut ended = json!({
            "run_id": id, "session_id": id, "agent": "demo", "model": "demo/scripted", "mode": "sync",
            "status": "completed", "usage": {}, "step_count": 1, "metadata": {"a": [1, 2.5, null]}, "created_at": time,
            "output": [{"id": id, "role": "assistant", "content": content, "created_at": time}],
        });
        let summary = ended.clone();
        ended["value"] = json!({"celsius": 21});
        let tool = json!({
            "step_number": 1, "call_id": "c1", "name": "t", "arguments": "{\"a\": 1", "content": content,
            "is_error": true, "duration_ms": 3,
        });
        for (name, data) in [
            ("run.started", summary),
            ("run.completed", ended),
            (
                "session.committed",
                json!({"session_id": id, "parent_session_id": null, "root_hash": "0".repeat(64)}),
            ),
            ("message.delta", json!({"step_number": 1, "text": "\u{1f600}\u{0}\""})),
            ("tool_call.completed", tool),
        ] {
            let event = json!({"sequence": 7, "run_id": id, "time": time, "type": name, "data": data});
            let event: RunEvent = serde_json::from_value(event).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(event.payload.name(), name);
            assert_eq!(decode_event(&encode_event(&event)), Some(event));
        }
    }

    #[test]
    fn a_large_or_malformed_event_is_not_read() {
        let id = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";
        let data = json!({"step_number": 1, "text": "x".repeat(MAX_EVENT_BYTES)});
        let event = json!({
            "sequence": 7, "run_id": id, "time": "2026-01-01T00:00:00Z", "type": "message.delta", "data": data,
        });
        let encoded = encode_event(&serde_json::from_value(event).unwrap());
        assert_eq!(encoded, b"");
        for unreadable in [
            &encoded[..],
            b"{}",
            b"\xff",
            br#"{"version":2,"value":{}}"#,
            br#"{"version":1,"value":{}}"#,
        ] {
            assert_eq!(decode_event(unreadable), None);
        }
    }
}
