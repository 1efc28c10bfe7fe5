//! A very long conversation: how it is made, read and continued by a service that has just started
//! and has nothing in its cache.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use uuid::Uuid;

use crate::bench::Bench;
use crate::client::Ask;
use crate::mock::{FAST, MockModel, probe};
use crate::report::{Report, milliseconds, progress};
use crate::sample::{Sample, count};
use crate::service::Service;
use crate::wire_counter::{Passed, WireCounter};

const RESTARTS: u64 = 5;
/// How many of the last turns are hot at full depth.
const LAST: usize = 100;
/// Numbers of probes that no other part uses.
const FIRST_PROBE: u64 = 1_000_000_000;

/// Drives a conversation of many turns through the service, then reads it through fresh ones.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let depth = bench.options.depth;
    let name = format!("depth {depth}");
    let service = bench.start().await?;
    service.client.put_agent(&[]).await?;
    let (short, _) = converse(&service, bench.mock, 3).await?;
    progress(&format!("a conversation of {depth} turns"));
    let (mut session_id, times) = converse(&service, bench.mock, depth).await?;
    service.stop().await?;
    let made = times.iter().sum::<Duration>();
    let rate = count(times.len()) / made.as_secs_f64();
    report.add(format!("{name}: all turns, one after another"), rate, "turns/s");
    let last = times[times.len().saturating_sub(LAST)..].to_vec();
    let hot = milliseconds(Sample::new(made, last).median());
    report.add(format!("{name}: a turn, hot"), hot, "ms");

    for restart in 0..RESTARTS {
        let service = bench.start().await?;
        let page = milliseconds(service.client.first_message(session_id).await?);
        report.add(format!("{name}: first page of messages after a restart"), page, "ms");
        let run = continue_from(&service, bench.mock, session_id, FIRST_PROBE + restart).await?;
        let (load, whole) = (milliseconds(run.until_model), milliseconds(run.whole));
        report.add(format!("{name}: load after a restart"), load, "ms");
        report.add(format!("{name}: a turn after a restart"), whole, "ms");
        // The next one continues a tip too, as in a conversation; a turn from a session that has
        // been continued is a fork.
        session_id = run.session_id;
        service.stop().await?;
    }
    count_round_trips(bench, (short, session_id), &name, report).await
}

/// Counts on the wire what one connection needs once its statements are prepared.
async fn count_round_trips(
    bench: &Bench<'_>,
    (short, session_id): (Uuid, Uuid),
    name: &str,
    report: &mut Report<'_>,
) -> Result<()> {
    let (mock, database) = (bench.mock, bench.database.postgres()?);
    let counter = WireCounter::start(database.address()).await?;
    mock.set_counter(counter.clone());
    let url = database.url(Some(counter.port));
    let settings = [("AGENT_RUNTIME__STORE__MAX_CONNECTIONS", "1")];
    let service = bench.launcher.start_with(&url, &settings).await?;
    // Prepares every statement, on another session so that nothing of this one is cached.
    service.client.first_message(short).await?;
    continue_from(&service, mock, short, FIRST_PROBE + 100).await?;

    let start = counter.passed();
    service.client.first_message(session_id).await?;
    let page = counter.passed();
    let cold = continue_from(&service, mock, session_id, FIRST_PROBE + 101).await?;
    let committed = counter.passed();
    let hot = continue_from(&service, mock, cold.session_id, FIRST_PROBE + 102).await?;
    let end = counter.passed();
    service.stop().await?;
    let loaded = cold.passed.context("nothing was counted")?;
    let asked = hot.passed.context("nothing was counted")?;

    let mut add = |what: &str, from: Passed, to: Passed| {
        let round_trips = count(usize::try_from(to.round_trips - from.round_trips).unwrap_or_default());
        report.add(format!("{name}: round trips {what}"), round_trips, "");
    };
    add("for a page of messages", start, page);
    add("to load it", page, loaded);
    add("to commit the run that loaded it", loaded, committed);
    add("of the next run before its commit, hot", committed, asked);
    add("to commit the next run", asked, end);
    Ok(())
}

/// When the phases of a run were over, from its start.
#[derive(Debug)]
struct Phases {
    until_model: Duration,
    whole: Duration,
    /// The bytes to the database before the request to the model.
    passed: Option<Passed>,
    session_id: Uuid,
}

async fn continue_from(service: &Service, mock: &MockModel, base: Uuid, number: u64) -> Result<Phases> {
    let input = probe(number);
    let began = Instant::now();
    let ask = Ask {
        base: Some(base),
        input: &input,
        ..Ask::of(FAST)
    };
    let answer = service.client.run(ask).await?;
    let whole = began.elapsed();
    let arrival = mock.take_arrival(number).context("the model was never asked")?;
    Ok(Phases {
        until_model: arrival.at - began,
        whole,
        passed: arrival.passed,
        session_id: answer.session_id,
    })
}

/// Makes a conversation turn by turn; returns its tip and the time of each turn.
async fn converse(service: &Service, mock: &MockModel, turns: u64) -> Result<(Uuid, Vec<Duration>)> {
    let mut base = None;
    let mut times = Vec::new();
    for turn in 0..turns {
        let number = 2 * FIRST_PROBE + turn;
        let input = probe(number);
        let began = Instant::now();
        let ask = Ask {
            base,
            input: &input,
            ..Ask::of(FAST)
        };
        base = Some(service.client.run(ask).await?.session_id);
        times.push(began.elapsed());
        mock.take_arrival(number);
    }
    Ok((base.context("a conversation without turns")?, times))
}
