//! The keys of a tenant's live runs, and the commands that change them. A tenant's keys share a cluster slot.
//!
//! ```text
//! agent-runtime:{TENANT}:runs                sorted set: the ids of live runs by the time at which they are forgotten
//! agent-runtime:{TENANT}:base:SESSION_ID     the same, of the runs that work on one base
//! agent-runtime:{TENANT}:run:RUN_ID          hash: `summary`, `work`
//! agent-runtime:{TENANT}:session:SESSION_ID  the id of the run that has reserved the session
//! ```
//!
//! Each key expires unless the process that runs the run keeps it alive.

use std::time::Duration;

use redis::{Cmd, Pipeline, cmd};

use super::stored::StoredRun;
use crate::ids::{RunId, SessionId};
use crate::record::RunSummary;
use crate::tenant::TenantId;

const SHOW: &str = concat!(include_str!("index.lua"), include_str!("show.lua"));
const KEEP: &str = concat!(include_str!("index.lua"), include_str!("keep.lua"));

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

    /// Returns the command that shows the run; it answers nil, or a rival's id.
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

    /// Returns the command that keeps the run shown; it answers whether the run was still there.
    pub(super) fn keep(&self, expiry: Duration) -> Cmd {
        self.script(KEEP, self.base.as_deref().filter(|_| !self.ended), expiry)
    }

    /// Adds the commands that take the run off; their answers are ignored.
    pub(super) fn remove(&self, pipeline: &mut Pipeline) {
        let run_id = self.run_id.to_string();
        pipeline.del(&[&self.run, &self.session]).ignore();
        for index in [Some(&self.index), self.base.as_ref()].into_iter().flatten() {
            pipeline.zrem(index, &run_id).ignore();
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

/// Names the sorted set of a tenant's live runs.
pub(super) fn index_key(tenant: &TenantId) -> String {
    format!("{}:runs", prefix(tenant))
}

/// Names the hash of a run.
pub(super) fn run_key(tenant: &TenantId, run_id: RunId) -> String {
    format!("{}:run:{run_id}", prefix(tenant))
}

/// Names the string that holds which run has reserved a session.
pub(super) fn session_key(tenant: &TenantId, session_id: SessionId) -> String {
    format!("{}:session:{session_id}", prefix(tenant))
}

fn prefix(tenant: &TenantId) -> String {
    format!("agent-runtime:{{{tenant}}}")
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
