//! The stored form of a live run: JSON with a version, in two parts so that lists don't read payloads.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::queue::RunName;
use crate::board::LiveRun;
use crate::json::Value;
use crate::message::Message;
use crate::record::{RunSummary, StepRecord};
use crate::tenant::TenantId;

/// The version that this code writes, and the newest that it reads.
const VERSION: u32 = 1;

/// The most bytes of a run's steps and output that are shared; beyond, other replicas see its summary only. A larger value
/// could outlast the time limit of each write, and so keep all runs from being shared.
const MAX_WORK_BYTES: usize = 1 << 20;

/// Encodes runs, and remembers those that are too large, so that no step is encoded once more for nothing.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    too_large: Mutex<BTreeSet<RunName>>,
}

/// A live run as it is stored.
#[derive(Debug)]
pub(super) struct StoredRun {
    pub(super) summary: Vec<u8>,
    /// Empty when it is too large to be shared.
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
    output: &'a [Arc<Message>],
    value: &'a Option<Value>,
    steps: &'a [Arc<StepRecord>],
}

#[derive(Default, Deserialize)]
struct Work {
    output: Vec<Arc<Message>>,
    value: Option<Value>,
    steps: Vec<Arc<StepRecord>>,
}

impl Encoder {
    /// Encodes a run; `None`, with a line in the log, when that is impossible.
    pub(super) fn encode(&self, tenant: &TenantId, run: &LiveRun) -> Option<StoredRun> {
        self.try_encode(tenant, run)
            .inspect_err(|error| {
                tracing::debug!(error = error as &dyn std::error::Error, "a live run can't be shared");
            })
            .ok()
    }

    /// Forgets the runs that have ended.
    pub(super) fn retain(&self, is_live: impl Fn(&RunName) -> bool) {
        self.too_large().retain(is_live);
    }

    fn try_encode(&self, tenant: &TenantId, run: &LiveRun) -> Result<StoredRun, serde_json::Error> {
        let summary = write(&run.summary, usize::MAX)?.unwrap_or_default();
        let name = (tenant.clone(), run.summary.run_id);
        // Runs only grow.
        if self.too_large().contains(&name) {
            let work = Vec::new();
            return Ok(StoredRun { summary, work });
        }
        let work = WorkWriting {
            output: &run.output,
            value: &run.value,
            steps: &run.steps,
        };
        let work = write(work, MAX_WORK_BYTES)?;
        if work.is_none() {
            tracing::debug!(run_id = %run.summary.run_id, "the steps of a live run are too large to be shared");
            self.too_large().insert(name);
        }
        Ok(StoredRun {
            summary,
            work: work.unwrap_or_default(),
        })
    }

    fn too_large(&self) -> MutexGuard<'_, BTreeSet<RunName>> {
        self.too_large.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decodes a run without its steps and output; none when there is nothing, or nothing that this version can read.
pub(super) fn decode_summary(summary: Option<&[u8]>) -> Option<LiveRun> {
    read::<RunSummary>(summary?).map(LiveRun::begun)
}

/// Decodes a whole run. Steps that are not shared, or can't be read, are left out.
pub(super) fn decode(summary: Option<&[u8]>, work: Option<&[u8]>) -> Option<LiveRun> {
    let run = decode_summary(summary)?;
    let work = work.filter(|work| !work.is_empty());
    let Work { output, value, steps } = work.and_then(read).unwrap_or_default();
    Some(LiveRun {
        output,
        value,
        steps,
        ..run
    })
}

/// Writes a value; `None` when it takes more bytes, which is found without writing the rest.
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
        // The only thing that fails as IO is the bound.
        Err(error) if error.is_io() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Keeps what is written, and fails beyond its bound.
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
            tracing::debug!("a live run of a newer replica is skipped");
            None
        }
        Err(error) => {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "an unreadable live run is skipped"
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
        let run = json!({
            "summary": {
                "run_id": id, "session_id": id, "agent": "demo", "model": "demo/scripted", "mode": "sync",
                "status": "running", "usage": {}, "step_count": 0, "metadata": {}, "created_at": time,
            },
            "output": output.iter().map(message).collect::<Vec<_>>(),
            "value": {"celsius": 21},
        });
        serde_json::from_value(run).unwrap()
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
    fn the_steps_of_a_run_that_was_too_large_are_not_looked_at_again() {
        let tenant: TenantId = "acme".parse().unwrap();
        let (small, large) = (run_of(&["hi"]), run_of(&["hi", &"x".repeat(MAX_WORK_BYTES)]));
        let encoder = Encoder::default();
        let decoded = |stored: StoredRun| decode(Some(&stored.summary), Some(&stored.work)).unwrap();
        assert_eq!(decoded(encoder.encode(&tenant, &small).unwrap()), small);
        assert_eq!(
            decoded(encoder.encode(&tenant, &large).unwrap()),
            LiveRun::begun(large.summary.clone())
        );
        // No run shrinks; that this one is not shared whole shows that it wasn't looked at.
        assert!(encoder.encode(&tenant, &small).unwrap().work.is_empty());
        encoder.retain(|_| false);
        assert_eq!(decoded(encoder.encode(&tenant, &small).unwrap()), small);
    }
}
