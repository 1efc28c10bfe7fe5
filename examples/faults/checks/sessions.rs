//! Every run that completed, was stopped or waits has one session, whole and as providers accept
//! it, and no other run has any.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::Value;
use uuid::Uuid;

use super::stored::StoredRun;
use super::{Findings, Stored, files};
use crate::caller::STEERING;
use crate::client::Client;
use crate::facts::Facts;
use crate::random::Random;

/// A result of a tool, as a session holds it.
#[derive(Debug)]
pub(super) struct ToolAnswer {
    /// The request whose run added it.
    pub(super) request: u64,
    /// The tool.
    pub(super) tool: String,
    /// The text for the model.
    pub(super) text: String,
    /// Whether it is an error.
    pub(super) is_error: bool,
}

/// Checks the sessions and returns the results of tools that they hold.
pub(super) async fn check(
    facts: &[Facts],
    stored: &Stored,
    client: &Client,
    findings: &mut Findings,
) -> Result<Vec<ToolAnswer>> {
    let mut published: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
    for session in &stored.sessions {
        published
            .entry(session.run_id.unwrap_or_default())
            .or_default()
            .push(session.session_id);
    }
    let mut random = Random::new(0, 2);
    let mut results = Vec::new();
    for fact in facts {
        let Some(ids) = fact.run else { continue };
        let sessions = published.remove(&ids.run_id).unwrap_or_default();
        let has_session = stored.runs.get(&ids.run_id).is_some_and(StoredRun::has_session);
        let wanted: &[Uuid] = if has_session { &[ids.session_id] } else { &[] };
        if sessions != wanted {
            findings.violation(fact, format!("it has the sessions {sessions:?}"));
        }
        let committed = fact
            .events
            .iter()
            .filter(|event| event.name == "session.committed")
            .count();
        if fact.end().is_some() && committed != sessions.len() {
            findings.violation(fact, format!("session.committed was emitted {committed} times"));
        }
        if has_session {
            let path = format!("/v1/sessions/{}", ids.session_id);
            let report = client.get(&mut random, &format!("{path}/verify")).await?;
            if report["valid"] != true {
                findings.violation(fact, format!("its session is not valid: {report}"));
            }
            let session = client.get(&mut random, &path).await?;
            findings.sessions += 1;
            read_history(fact, &session, findings, &mut results);
            let files = client.list(&mut random, &format!("{path}/files")).await?;
            files::check(fact, &session, &files, findings);
        }
    }
    for (run, sessions) in published {
        findings
            .violations
            .push(format!("the sessions {sessions:?} of run {run} belong to no request"));
    }
    Ok(results)
}

/// Checks the messages that the run has added, beginning with those of its request.
fn read_history(fact: &Facts, session: &Value, findings: &mut Findings, results: &mut Vec<ToolAnswer>) {
    let messages = session["message_history_state"]["messages"].as_array();
    let messages = messages.map(Vec::as_slice).unwrap_or_default();
    // The calls that answers are about were made by the run before.
    let note = fact.request.first_note();
    let asked: Vec<usize> = (0..messages.len())
        .filter(|at| text_of(&messages[*at]) == note)
        .collect();
    let [begin] = asked[..] else {
        findings.violation(fact, format!("its words stand {} times in its session", asked.len()));
        return;
    };
    let (mut calls, mut answered) = (Vec::new(), BTreeSet::new());
    for message in &messages[begin..] {
        for part in message["content"].as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("tool_call") => calls.push(part["id"].as_str().unwrap_or_default()),
                Some("tool_result") => {
                    if !answered.insert(part["call_id"].as_str().unwrap_or_default()) {
                        findings.violation(fact, "a call has two results");
                    }
                    results.push(ToolAnswer {
                        request: fact.request.number,
                        tool: part["name"].as_str().unwrap_or_default().to_owned(),
                        text: text_of(part),
                        is_error: part["is_error"] == true,
                    });
                }
                _ => (),
            }
        }
    }
    let unique: BTreeSet<&str> = calls.iter().copied().collect();
    if unique.len() != calls.len() || unique != answered {
        findings.violation(fact, format!("{} calls have {} results", calls.len(), answered.len()));
    }
    let steered = messages[begin..]
        .iter()
        .filter(|message| text_of(message) == STEERING)
        .count();
    let is_applied = fact.control.as_ref().is_some_and(|control| control.contains("applied"));
    if steered > 1 || (is_applied && steered != 1) {
        findings.violation(
            fact,
            format!("the message to the run stands {steered} times in its session"),
        );
    }
}

/// Joins the texts of a message or a result; a plain text is one.
pub(super) fn text_of(value: &Value) -> String {
    match &value["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
