//! Makes all processes of a store read the files of agents again after one of them has done so at a
//! request. The entry in the audit log is the message, which each process polls for.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::agents::Configured;
use super::context::RunContext;
use store::audit::{Act, AuditAction, AuditChain, Requester};
use store::{Outage, StoreError};
use values::json::{Object, Value};

/// How often a process polls.
const PAUSE: Duration = Duration::from_secs(2);
/// The pause before the files are read again, if they are not those of the other process yet.
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// How often the files are read for one reload: volumes of files may be late.
const TRIES: u32 = 18;
/// The most entries that one query reads.
const PAGE: u32 = 100;

/// What an entry calls the files of agents.
const TARGET: &str = "files of agents";

/// Follows the reloads of other processes.
#[derive(Debug)]
pub struct ReloadFollower {
    ctx: Arc<RunContext>,
    /// The last entry that was read.
    seen: u64,
    /// The reload to follow.
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    /// The versions of the agents at the other process, if its entry has them.
    versions: Option<Object>,
    tries: u32,
}

/// What is read of an entry, which a newer version may have written.
#[derive(Deserialize)]
struct ReloadEntry {
    action: String,
    #[serde(default)]
    details: Object,
}

/// Records that this process has reloaded the files of agents. The others follow.
pub async fn record_reload(ctx: &RunContext, agents: &Configured, by: &Requester) -> Result<(), StoreError> {
    let act = Act::of_service(by, AuditAction::AgentFilesReloaded, TARGET)
        .with("process", process_name(ctx))
        .with("versions", versions(agents));
    ctx.store.audit_insert(&act).await
}

fn versions(agents: &Configured) -> Object {
    let versions = agents.iter().map(|(name, agent)| (name.clone(), json!(agent.version)));
    versions.collect()
}

fn process_name(ctx: &RunContext) -> String {
    ctx.process.leases.worker().to_string()
}

impl ReloadFollower {
    /// Follows reloads after an entry, which was the last one before this process read its files.
    pub fn new(ctx: Arc<RunContext>, seen: u64) -> Self {
        Self {
            ctx,
            seen,
            pending: None,
        }
    }

    /// Waits until this process has to read its files again.
    pub async fn next(&mut self) {
        if self.pending.is_some() {
            return sleep(RETRY_PAUSE).await;
        }
        if !self.ctx.store.is_shared() {
            return std::future::pending().await;
        }
        let mut outage = Outage::default();
        loop {
            let polled = self.poll().await;
            outage.note("reloads at other processes are not noticed", &polled);
            if self.pending.is_some() {
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Records which agents this process has read; `None` if its files can't be used.
    pub fn reloaded(&mut self, agents: Option<&Configured>) {
        let Some(pending) = &mut self.pending else {
            return;
        };
        pending.tries += 1;
        let wanted = pending.versions.as_ref();
        if agents.is_some_and(|agents| wanted.is_none_or(|wanted| *wanted == versions(agents))) {
            self.pending = None;
        } else if pending.tries == TRIES {
            tracing::warn!("the agents of files are not those that another process has read");
            self.pending = None;
        }
    }

    async fn poll(&mut self) -> Result<(), StoreError> {
        let (store, chain) = (Arc::clone(&self.ctx.store), AuditChain::Service);
        let last = store.audit_head(&chain).await?.number;
        if last < self.seen {
            // The store was restored from a backup.
            self.seen = last;
            self.pending = Some(Pending {
                versions: None,
                tries: 0,
            });
        }
        while self.seen < last {
            let records = store.audit_read(&chain, self.seen + 1, PAGE).await?;
            for record in &records {
                if let Ok(entry) = serde_json::from_str(&record.entry) {
                    self.read(&entry);
                }
            }
            // An entry that somebody has removed is not waited for.
            self.seen = records.last().map_or(last, |record| record.number);
        }
        Ok(())
    }

    fn read(&mut self, entry: &ReloadEntry) {
        let is_elsewhere = entry.details.get("process") != Some(&json!(process_name(&self.ctx)));
        if entry.action != AuditAction::AgentFilesReloaded.to_string() || !is_elsewhere {
            return;
        }
        let versions = entry.details.get("versions").and_then(Value::as_object);
        // Those of many agents are too large for an entry.
        let versions = versions.filter(|versions| !versions.contains_key("omitted_bytes"));
        self.pending = Some(Pending {
            versions: versions.cloned(),
            tries: 0,
        });
    }
}
