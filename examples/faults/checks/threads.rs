//! Threads were moved in a line: every session of a run on a thread stands in the lineage of where
//! the thread is in the end.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use uuid::Uuid;

use super::stored::StoredRun;
use super::{Findings, Stored};
use crate::client::Client;
use crate::facts::Facts;
use crate::random::Random;

/// Checks every thread.
pub(super) async fn check(facts: &[Facts], stored: &Stored, client: &Client, findings: &mut Findings) -> Result<()> {
    let mut threads: BTreeMap<&str, BTreeSet<Uuid>> = BTreeMap::new();
    for fact in facts {
        let (Some(name), Some(run)) = (&fact.request.thread, fact.run) else {
            continue;
        };
        let sessions = threads.entry(name).or_default();
        if stored.runs.get(&run.run_id).is_some_and(StoredRun::has_session) {
            sessions.insert(run.session_id);
        }
    }
    let mut random = Random::new(0, 4);
    for (name, sessions) in threads {
        let thread = client.get(&mut random, &format!("/v1/threads/{name}")).await?;
        let mut members = BTreeSet::new();
        if let Some(head) = thread["session_id"].as_str() {
            let lineage = client
                .list(&mut random, &format!("/v1/sessions/{head}/lineage"))
                .await?;
            let ids = lineage.iter().filter_map(|session| session["session_id"].as_str());
            members.extend(ids.filter_map(|id| id.parse::<Uuid>().ok()));
        }
        if members != sessions {
            findings.violations.push(format!(
                "the thread {name} ({thread}) is not a line of its runs: {} sessions in its lineage, {} published on it",
                members.len(),
                sessions.len()
            ));
        }
        if thread["version"].as_u64() != u64::try_from(sessions.len()).ok() {
            findings.violations.push(format!(
                "the thread {name} was moved {} times for {} sessions",
                thread["version"],
                sessions.len()
            ));
        }
    }
    Ok(())
}
