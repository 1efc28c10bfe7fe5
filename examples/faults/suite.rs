//! The whole suite: the load and the mishaps side by side, then the checks, then the table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::Options;
use crate::chaos::{self, Counts};
use crate::checks::{self, Findings, Stored};
use crate::client::{Client, Patience};
use crate::facts::Facts;
use crate::fleet::Fleet;
use crate::ledger::{Effect, Ledger};
use crate::random::Random;
use crate::report::{Report, progress};
use crate::request::Request;
use crate::servers::Location;
use crate::statements::StatementCounter;
use crate::{caller, leftovers, report};

/// The most violations that are printed; one cause may have many.
const SHOWN: usize = 50;
/// The default of `queue.max_attempts`, of which the replicas have more.
const DEFAULT_ATTEMPTS: i32 = 5;

/// Runs the suite; returns whether every promise held.
pub(crate) async fn run(options: &Options) -> Result<bool> {
    let seed = options
        .seed
        .unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 32);
    progress(&format!("seed {seed}"));
    let position = Location {
        folder: options.folder.clone(),
        postgres_bin: options.postgres_bin.clone(),
        launch: options.launch.split_whitespace().map(str::to_owned).collect(),
    };
    let ledger = Ledger::open(&options.folder).await?;
    let mut fleet = Fleet::start(&position, &options.folder, &ledger).await?;
    let statements = fleet
        .postgres
        .counts_statements
        .then(|| StatementCounter::start(fleet.postgres.options()));
    let patience = Arc::new(Patience::new(options.patience));
    let client = Client::new(fleet.addresses(), Arc::clone(&patience))?;

    let begun = Instant::now();
    let (facts, counts) = storm(options, seed, &mut fleet, &client, &patience).await?;
    let took = begun.elapsed();
    let statements = statements.map(|counter| counter.total());

    progress("all is quiet; looking at what is left");
    let stored = Stored::read(&mut fleet.postgres.connect().await?).await?;
    let effects = ledger.effects().await?;
    let mut findings = checks::check(&facts, &stored, &effects, &client.anew()).await?;
    fleet.end().await?;
    findings.violations.extend(leftovers::find(&fleet.commands()).await?);
    let mut report = Report::default();
    report.add("seed", seed.to_string());
    report_load(&mut report, &facts, &counts, took);
    report_stored(&mut report, &stored, &effects, &findings, statements);
    report.add("violations", findings.violations.len().to_string());
    report.print(options.markdown);
    for violation in findings.violations.iter().take(SHOWN) {
        report::progress(&format!("VIOLATION (seed {seed}): {violation}"));
    }
    if let (false, Some(keep)) = (findings.violations.is_empty(), &options.keep) {
        keep_logs(&options.folder, keep)?;
    }
    Ok(findings.violations.is_empty())
}

/// Lets the callers and the mishaps at the replicas, and returns what the callers saw once all of
/// their runs have ended.
async fn storm(
    options: &Options,
    seed: u64,
    fleet: &mut Fleet,
    client: &Client,
    patience: &Patience,
) -> Result<(Vec<Facts>, Counts)> {
    let mut random = Random::new(seed, 5);
    let kills = if options.peaceful { 0 } else { options.kills };
    let deck = chaos::deck(kills, &mut random);
    let played = watch::Sender::new(0);
    let load = tokio::spawn(load(
        options.clone(),
        seed,
        client.clone(),
        played.subscribe(),
        deck.len(),
    ));
    let counts = chaos::play(fleet, &deck, options.pause, &mut random, &played).await?;
    fleet.wait_until_ready().await?;
    patience.begin();
    let facts = load.await.context("the load")?;
    Ok((facts, counts))
}

/// Sends all requests, at most so many at the same time, and no faster than the mishaps come.
async fn load(
    options: Options,
    seed: u64,
    client: Client,
    mut played: watch::Receiver<usize>,
    mishaps: usize,
) -> Vec<Facts> {
    let positions = Arc::new(Semaphore::new(usize::try_from(options.callers).unwrap_or(1)));
    let mut callers = JoinSet::new();
    for request in Request::list(seed, options.runs) {
        let due = mishaps as u64 * request.number.saturating_sub(options.callers) / options.runs;
        // The sender lives as long as the mishaps continue; afterwards nothing holds a request
        // back.
        let _ = played.wait_for(|played| *played as u64 >= due).await;
        let Ok(position) = Arc::clone(&positions).acquire_owned().await else {
            break;
        };
        let client = client.anew();
        callers.spawn(async move {
            let facts = caller::call(client, request, seed).await;
            drop(position);
            facts
        });
    }
    callers.join_all().await.into_iter().flatten().collect()
}

fn report_load(report: &mut Report, facts: &[Facts], counts: &Counts, took: Duration) {
    let accepted = facts.iter().filter(|fact| fact.run.is_some()).count();
    report.add("runs asked for / accepted", format!("{} / {accepted}", facts.len()));
    report.add("time", format!("{:.1} s", took.as_secs_f64()));
    for (mishap, count) in counts {
        report.add(format!("mishaps: {mishap:?}"), count.to_string());
    }
    report.add_times(
        "from the request to the terminal event",
        facts.iter().map(|fact| fact.took).collect(),
    );
    let reconnects: u64 = facts.iter().map(|fact| fact.reconnects).sum();
    report.add("readers came back", reconnects.to_string());
    let sent_back: u64 = facts.iter().map(|fact| fact.sent_back).sum();
    report.add("readers were sent back to a resumption", sent_back.to_string());
    let mut answers: BTreeMap<&str, u64> = BTreeMap::new();
    for fact in facts {
        if let Some(control) = &fact.control {
            *answers.entry(control).or_default() += 1;
        }
    }
    for (answer, count) in answers {
        report.add(format!("answers to {answer}"), count.to_string());
    }
}

fn report_stored(
    report: &mut Report,
    stored: &Stored,
    effects: &[Effect],
    findings: &Findings,
    statements: Option<i64>,
) {
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let (mut attempts, mut most, mut beyond) = (0, 0, 0);
    for run in stored.runs.values() {
        let code = run.error.as_ref().map(|error| {
            let error: serde_json::Value = serde_json::from_str(error).unwrap_or_default();
            format!(" ({})", error["code"].as_str().unwrap_or_default())
        });
        *ends
            .entry(format!("{}{}", run.status, code.unwrap_or_default()))
            .or_default() += 1;
        attempts += run.attempts;
        most = most.max(run.attempts);
        beyond += u64::from(run.attempts > DEFAULT_ATTEMPTS);
    }
    for (end, count) in ends {
        report.add(format!("runs that ended: {end}"), count.to_string());
    }
    let begun_again: i32 = stored.runs.values().map(|run| (run.attempts - 1).max(0)).sum();
    let runs = i32::try_from(stored.runs.len()).unwrap_or(i32::MAX).max(1);
    let mean = f64::from(attempts) / f64::from(runs);
    report.add("attempts per run", format!("{mean:.2}, at most {most}"));
    report.add("runs with more than the default attempts", beyond.to_string());
    report.add(
        "times that a run was begun again by another attempt",
        begun_again.to_string(),
    );
    report.add("sessions read and verified", findings.sessions.to_string());
    report.add("files compared with their sessions", findings.files.to_string());
    report.add("effects of tools", effects.len().to_string());
    report.add(
        "calls of which the model read that their effect is uncertain",
        findings.uncertain_calls.to_string(),
    );
    report.add("events read again from the first on", findings.events.to_string());
    report.add(
        "events that were another when they were read live",
        findings.different_events.to_string(),
    );
    let words = statements.map_or_else(
        || "not counted".to_owned(),
        |count| format!("{}", count / i64::from(runs)),
    );
    report.add("database statements per run, idle replicas included", words);
}

fn keep_logs(folder: &std::path::Path, keep: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(keep)?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if let (Some(name), Some("log")) = (path.file_name(), path.extension().and_then(|end| end.to_str())) {
            std::fs::copy(&path, keep.join(name))?;
        }
    }
    Ok(())
}
