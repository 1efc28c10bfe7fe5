//! The keys of a tenant's live runs, and the commands that change them.
//!
//! ```text
//! agent-runtime:TENANT:runs                sorted set: ids of live runs by the time they expire
//! agent-runtime:TENANT:base:SESSION_ID     the same, for the runs that work on one base
//! agent-runtime:TENANT:run:RUN_ID          hash: `summary`, `work`
//! agent-runtime:TENANT:session:SESSION_ID  the id of the run that has reserved the session
//! agent-runtime:TENANT:events:RUN_ID       stream: `fence` and `event`; ids are SEQUENCE-0
//! agent-runtime:TENANT:rate                the time at which all allowed requests would be due
//! ```
//!
//! All tenants share three channels: `agent-runtime:changes`, `agent-runtime:feed` and
//! `agent-runtime:signals`.
//!
//! Each key expires unless the run's process refreshes it.

use std::time::Duration;

use redis::{Cmd, Pipeline, cmd};

use super::stored::StoredRun;
use crate::events::Unshared;
use agent::record::RunSummary;
use values::ids::{RunId, SessionId};
use values::tenant::TenantId;

const SHOW: &str = concat!(include_str!("index.lua"), include_str!("show.lua"));
const REFRESH: &str = concat!(include_str!("index.lua"), include_str!("refresh.lua"));
const APPEND: &str = include_str!("append.lua");
const REMOVE: &str = include_str!("remove.lua");

/// The most events of a run that the server retains, about.
const MAX_EVENTS: usize = 10_000;

/// The channel of the ids of runs that have changed.
pub(super) const CHANGES_CHANNEL: &str = "agent-runtime:changes";
/// The channel of the changes of tenants.
pub(super) const FEED_CHANNEL: &str = "agent-runtime:feed";
/// The channel of control messages to runs.
pub(super) const CONTROL_CHANNEL: &str = "agent-runtime:signals";

/// The keys of one run.
#[derive(Debug, Clone)]
pub(super) struct RunKeys {
    run_id: RunId,
    index: String,
    run: String,
    session: String,
    base: Option<String>,
    ended: bool,
}

impl RunKeys {
    pub(super) fn new(tenant: &TenantId, run: &RunSummary) -> Self {
        Self {
            run_id: run.run_id,
            index: index_key(tenant),
            run: run_key(tenant, run.run_id),
            session: session_key(tenant, run.session_id),
            base: run
                .base_session_id
                .map(|base| format!("{}:base:{base}", prefix(tenant))),
            ended: run.status.is_terminal(),
        }
    }

    /// Returns the command that adds the run. If the run is exclusive and other runs have the same
    /// base, the reply is their ids instead.
    pub(super) fn show(&self, stored: &StoredRun, expiry: Duration, exclusive: bool) -> Cmd {
        let claim = match (self.ended, exclusive) {
            (true, _) => "none",
            (false, true) => "exclusive",
            (false, false) => "shared",
        };
        let mut command = self.script(SHOW, self.base.as_deref(), expiry);
        command.arg(claim).arg(&stored.summary).arg(&stored.work);
        command
    }

    /// Returns the command that renews the expiry of the run. The reply is whether the run still
    /// existed.
    pub(super) fn refresh(&self, expiry: Duration) -> Cmd {
        self.script(REFRESH, self.base.as_deref().filter(|_| !self.ended), expiry)
    }

    /// Adds the commands that remove the run. Their replies are ignored.
    pub(super) fn remove(&self, request: &mut Pipeline) {
        let run_id = self.run_id.to_string();
        request.add_command(Cmd::del(&[&self.run, &self.session]));
        for index in [Some(&self.index), self.base.as_ref()].into_iter().flatten() {
            request.add_command(Cmd::zrem(index, &run_id));
        }
    }

    fn script(&self, script: &str, base: Option<&str>, expiry: Duration) -> Cmd {
        let keys = [Some(self.index.as_str()), Some(&self.run), Some(&self.session), base];
        let keys: Vec<&str> = keys.into_iter().flatten().collect();
        let mut command = cmd("EVAL");
        command.arg(script).arg(keys.len()).arg(keys);
        command.arg(self.run_id.to_string()).arg(milliseconds(expiry));
        command
    }
}

/// Returns the command that appends encoded events to the stream of a run. The reply is the number
/// of the stream's last event. It is 0 if all events must be sent again, or -1 if a later attempt
/// at the run has begun.
pub(super) fn append(
    tenant: &TenantId,
    run_id: RunId,
    events: &Unshared,
    encoded: &[Vec<u8>],
    retention: Duration,
) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(APPEND).arg(1).arg(events_key(tenant, run_id));
    command.arg(events.fence).arg(milliseconds(retention)).arg(MAX_EVENTS);
    command
        .arg(events.first)
        .arg(u8::from(events.starts_stream))
        .arg(encoded);
    command
}

/// Returns the command that reads the events of a run, from a number on.
pub(super) fn read_events(tenant: &TenantId, run_id: RunId, first: u64, limit: usize) -> Cmd {
    let mut command = cmd("XRANGE");
    command
        .arg(events_key(tenant, run_id))
        .arg(format!("{first}-0"))
        .arg("+");
    command.arg("COUNT").arg(limit);
    command
}

/// Returns the command that reads the last event of a run.
pub(super) fn last_event(tenant: &TenantId, run_id: RunId) -> Cmd {
    let mut command = cmd("XREVRANGE");
    command.arg(events_key(tenant, run_id)).arg("+").arg("-");
    command.arg("COUNT").arg(1);
    command
}

/// Returns the command that removes some keys of a tenant. The reply is the cursor for the next
/// command, `0` at the end, and the number of removed keys.
pub(super) fn remove_some(tenant: &TenantId, from: &str) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(REMOVE).arg(0);
    // No character of a tenant's name has a special meaning in a pattern.
    command.arg(from).arg(format!("{}:*", prefix(tenant)));
    command
}

/// Returns the command that checks that the server accepts writes. It deletes a key that never
/// exists. A server that a failover has made a replica refuses it.
pub(super) fn pulse() -> Cmd {
    Cmd::del("agent-runtime:pulse")
}

/// Returns the key of the rate of a tenant's requests.
pub(super) fn rate_key(tenant: &TenantId) -> String {
    format!("{}:rate", prefix(tenant))
}

/// Returns the key of the sorted set of a tenant's live runs.
pub(super) fn index_key(tenant: &TenantId) -> String {
    format!("{}:runs", prefix(tenant))
}

/// Returns the key of the hash of a run.
pub(super) fn run_key(tenant: &TenantId, run_id: RunId) -> String {
    format!("{}:run:{run_id}", prefix(tenant))
}

/// Returns the key of the string with the run that has reserved a session.
pub(super) fn session_key(tenant: &TenantId, session_id: SessionId) -> String {
    format!("{}:session:{session_id}", prefix(tenant))
}

fn events_key(tenant: &TenantId, run_id: RunId) -> String {
    format!("{}:events:{run_id}", prefix(tenant))
}

fn prefix(tenant: &TenantId) -> String {
    format!("agent-runtime:{tenant}")
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
