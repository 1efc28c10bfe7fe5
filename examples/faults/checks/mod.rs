//! Checks of promises at the end. They hold after any mishap.

mod effects;
mod events;
mod files;
mod sessions;
mod stored;
mod threads;

pub(crate) use self::stored::Stored;

use std::collections::BTreeMap;

use anyhow::Result;
use uuid::Uuid;

use crate::client::Client;
use crate::facts::Facts;
use crate::ledger::Effect;

/// The statuses that nothing follows on.
const TERMINAL: [&str; 6] = ["completed", "stopped", "waiting", "answered", "failed", "cancelled"];

/// The findings of the checks.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The broken promises, each with the facts of its run.
    pub(crate) violations: Vec<String>,
    /// The number of sessions that were read and verified.
    pub(crate) sessions: usize,
    /// The number of files that were compared with what sessions say about them.
    pub(crate) files: usize,
    /// The number of events that were read again.
    pub(crate) events: usize,
    /// The number of events that the live reader read otherwise than the later one.
    pub(crate) different_events: usize,
    /// The number of calls whose effect is uncertain by the results that models read.
    pub(crate) uncertain_calls: usize,
}

impl Findings {
    /// Notes a violation by a run.
    fn violation(&mut self, facts: &Facts, words: impl std::fmt::Display) {
        self.violations.push(format!("{words}\n    {}", facts.describe()));
    }
}

/// Checks everything.
pub(crate) async fn check(facts: &[Facts], stored: &Stored, effects: &[Effect], client: &Client) -> Result<Findings> {
    let mut findings = Findings::default();
    for fact in facts {
        let stored = fact.run.and_then(|run| stored.runs.get(&run.run_id));
        for fault in &fact.faults {
            findings.violation(fact, format!("{fault}\n    stored: {stored:?}"));
        }
    }
    check_ends(facts, stored, &mut findings);
    check_leftovers(stored, &mut findings);
    let results = sessions::check(facts, stored, client, &mut findings).await?;
    effects::check(facts, effects, &results, &mut findings);
    threads::check(facts, stored, client, &mut findings).await?;
    events::check(facts, stored, client, &mut findings).await?;
    Ok(findings)
}

/// Each request has one run, which has ended as its events report.
fn check_ends(facts: &[Facts], stored: &Stored, findings: &mut Findings) {
    let mut of_request: BTreeMap<u64, Vec<Uuid>> = BTreeMap::new();
    for run in stored.runs.values() {
        of_request.entry(run.request).or_default().push(run.run_id);
    }
    for fact in facts {
        let runs = of_request.remove(&fact.request.number).unwrap_or_default();
        let Some(ids) = fact.run else {
            if !runs.is_empty() {
                findings.violation(fact, format!("no caller has got {runs:?}"));
            }
            continue;
        };
        if runs != [ids.run_id] {
            findings.violation(fact, format!("the request has the runs {runs:?}"));
        }
        let Some(run) = stored.runs.get(&ids.run_id) else {
            continue;
        };
        // Another run has answered its calls since.
        let stored = if run.status == "answered" {
            "waiting"
        } else {
            run.status.as_str()
        };
        if fact.end().is_some_and(|emitted| emitted != stored) {
            findings.violation(fact, format!("it is stored as {}", run.status));
        }
        if !TERMINAL.contains(&run.status.as_str()) {
            findings.violation(fact, format!("it has not ended: {run:?}"));
        }
        // The models and tools of the load never fail, and a mishap is no reason for a run to.
        if run.status == "failed" {
            findings.violation(fact, format!("it failed: {:?}", run.error));
        }
        if run.session_id != ids.session_id {
            findings.violation(fact, "its session has another id than its events");
        }
    }
    for (request, runs) in of_request {
        findings
            .violations
            .push(format!("runs that nobody asked for: {runs:?} of request {request}"));
    }
}

fn check_leftovers(stored: &Stored, findings: &mut Findings) {
    for (what, count) in &stored.leftovers {
        if *count != 0 {
            findings.violations.push(format!("{count} rows are left over: {what}"));
        }
    }
}
