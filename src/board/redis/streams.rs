//! Tracks which events of this process's runs the server has, and sends the rest.
//!
//! The source is this process's own log. The stream has an entry `SEQUENCE-0` for each event. So an
//! append can be repeated, and a reader's cursor is the number of its last event.
//!
//! *Lost events.* `append.lua` returns where the stream ends. If that is less than what was sent,
//! the server has lost events, by a restart or a failover. The process then sends them again. If it
//! no longer holds the next one, it starts the stream again with its oldest event.
//!
//! *Attempts.* Each entry names the attempt that emitted it. The first append of a later attempt
//! removes what an earlier attempt emitted beyond it. An earlier attempt that still writes learns
//! that it was taken over, and forgets its events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Cmd;

use super::keys::{self, Append};
use super::queue::RunName;
use super::stored;
use crate::board::InProcessBoard;
use crate::board::events::{HeldLog, LogReading};
use crate::ids::RunId;
use crate::record::RunEvent;

/// The most events of one append.
const MAX_EVENTS: usize = 512;
/// The bytes after which an append takes no further event.
const MAX_BYTES: usize = 1 << 20;

/// What the server has of the runs of this process.
#[derive(Debug)]
pub(super) struct Streams {
    local: Arc<InProcessBoard>,
    retention: Duration,
    positions: Mutex<HashMap<RunId, Position>>,
}

/// What the server has of a run.
#[derive(Debug, Clone, Copy)]
enum Position {
    /// The events up to this one.
    After(u64),
    /// Nothing that what is held here could follow on.
    Anew,
}

/// An append that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    /// The run.
    pub(super) run: RunName,
    held: HeldLog,
    last: u64,
}

/// What the answer to an append shows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answered {
    /// Whether there is more to send of the run.
    pub(super) is_behind: bool,
    /// Whether the server has lost what it had: another one may have come in its place without anybody noticing.
    pub(super) has_lost: bool,
}

impl Streams {
    pub(super) fn new(local: Arc<InProcessBoard>, retention: Duration) -> Self {
        Self {
            local,
            retention,
            positions: Mutex::default(),
        }
    }

    /// Returns the next append of a run with its size; none when nothing is held of the run. One without events asks what the
    /// server has.
    pub(super) fn next(&self, run: &RunName) -> Option<(Sent, Cmd, usize)> {
        let (tenant, run_id) = run;
        let held = self.local.events.held(tenant, *run_id)?;
        let position = self.positions().get(run_id).copied();
        let (first, anew) = match position {
            Some(Position::After(last)) if last + 1 >= held.first => (last.min(held.last) + 1, false),
            // What was not sent is no longer held.
            Some(Position::After(_) | Position::Anew) => (held.first, true),
            None => (held.first, false),
        };
        let events = match self.local.events.read(tenant, *run_id, first - 1, MAX_EVENTS) {
            LogReading::Known(events) | LogReading::Released(events) => events,
            LogReading::Missing => return None,
        };
        let (events, bytes) = encode(&events);
        let append = Append {
            attempt: held.attempt,
            first,
            anew,
            events: &events,
        };
        let command = keys::append(tenant, *run_id, &append, self.retention);
        let sent = Sent {
            run: run.clone(),
            held,
            last: first - 1 + events.len() as u64,
        };
        Some((sent, command, bytes))
    }

    /// Takes note of what the server answered.
    pub(super) fn answered(&self, sent: &Sent, answer: i64) -> Answered {
        let (tenant, run_id) = &sent.run;
        let Ok(last) = u64::try_from(answer) else {
            // What was told here since is not what happened.
            self.positions().remove(run_id);
            self.local.events.forget(*run_id);
            return Answered::default();
        };
        let position = if last + 1 >= sent.held.first {
            Position::After(last)
        } else {
            Position::Anew
        };
        let before = self.positions().insert(*run_id, position);
        self.local.changes.tell(*run_id);
        let is_behind = |held: HeldLog| last < held.last;
        Answered {
            is_behind: last < sent.last || self.local.events.held(tenant, *run_id).is_some_and(is_behind),
            has_lost: matches!(before, Some(Position::After(known)) if last < known),
        }
    }

    /// Returns the number of the last event that the server has.
    pub(super) fn shared(&self, run_id: RunId) -> u64 {
        match self.positions().get(&run_id) {
            Some(Position::After(last)) => *last,
            Some(Position::Anew) | None => 0,
        }
    }

    /// Forgets the runs of which nothing is held any more.
    pub(super) fn sweep(&self) {
        self.positions().retain(|run_id, _| self.local.events.is_kept(*run_id));
    }

    fn positions(&self) -> MutexGuard<'_, HashMap<RunId, Position>> {
        // A position that is wrong is corrected by the server's next answer.
        self.positions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Encodes the first events, at least one, up to the size of an append.
fn encode(events: &[Arc<RunEvent>]) -> (Vec<Vec<u8>>, usize) {
    let mut encoded = Vec::with_capacity(events.len());
    let mut bytes = 0;
    for event in events {
        if bytes >= MAX_BYTES {
            break;
        }
        let event = stored::encode_event(event);
        bytes += event.len();
        encoded.push(event);
    }
    (encoded, bytes)
}
