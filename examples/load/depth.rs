//! A very long conversation: how it is made, read and continued by a service that has just started
//! and has nothing in its cache.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use uuid::Uuid;

use crate::client::Ask;
use crate::mock::{FAST, MockModel, probe};
use crate::postgres::PostgresDatabase;
use crate::report::{Report, milliseconds, progress};
use crate::sample::{Sample, count};
use crate::service::{Launcher, Service};
use crate::wire_counter::{Passed, WireCounter};

const RESTARTS: usize = 5;
/// Numbers of probes that no other part uses.
const FIRST_PROBE: u64 = 1_000_000_000;

/// Drives a conversation of `depth` turns through the service, then reads it through fresh ones.
pub(crate) async fn measure(
    launcher: &Launcher,
    mock: &MockModel,
    database: &PostgresDatabase,
    depth: u64,
    report: &mut Report,
) -> Result<()> {
    let url = database.url(None);
    let service = launcher.start(&url).await?;
    service.client.put_agent().await?;
    let (short, _) = converse(&service, mock, 3).await?;
    progress(&format!("a conversation of {depth} turns"));
    let (mut session_id, times) = converse(&service, mock, depth).await?;
    service.stop().await?;
    let turns = usize::try_from(depth)?;
    let made = times.iter().sum::<Duration>();
    let rate = count(turns) / made.as_secs_f64();
    report.add(
        format!("{depth} turns of one conversation, one after another"),
        format!("{rate:.0} turns/s"),
    );
    let last = times[turns - turns.min(100)..].to_vec();
    let hot = Sample::new(made, last).median();
    report.add(format!("a turn at depth {depth}, hot"), milliseconds(hot));

    let (mut pages, mut loads, mut cold_runs) = (Vec::new(), Vec::new(), Vec::new());
    for restart in 0..RESTARTS {
        let service = launcher.start(&url).await?;
        pages.push(service.client.first_message(session_id).await?);
        let run = continue_from(&service, mock, session_id, FIRST_PROBE + u64::try_from(restart)?).await?;
        loads.push(run.until_model);
        cold_runs.push(run.whole);
        // The next one continues a tip too, as in a conversation; a turn from a session that has
        // been continued is a fork.
        session_id = run.session_id;
        service.stop().await?;
    }
    let middle = |times| milliseconds(Sample::new(made, times).median());
    report.add(
        format!("depth {depth} after a restart: first page of messages"),
        middle(pages),
    );
    report.add(
        format!("depth {depth} after a restart: run, until the model is asked"),
        middle(loads),
    );
    report.add(format!("depth {depth} after a restart: run, whole"), middle(cold_runs));
    count_round_trips(launcher, mock, database, (short, session_id), depth, report).await
}

/// Counts on the wire what one connection needs once its statements are prepared.
async fn count_round_trips(
    launcher: &Launcher,
    mock: &MockModel,
    database: &PostgresDatabase,
    (short, session_id): (Uuid, Uuid),
    depth: u64,
    report: &mut Report,
) -> Result<()> {
    let counter = WireCounter::start(database.address()).await?;
    mock.set_counter(counter.clone());
    let url = database.url(Some(counter.port));
    let settings = [("AGENT_RUNTIME__STORE__MAX_CONNECTIONS", "1")];
    let service = launcher.start_with(&url, &settings).await?;
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
        let measured = format!(
            "{} ({} statements)",
            to.round_trips - from.round_trips,
            to.executions - from.executions
        );
        report.add(format!("depth {depth}: round trips {what}"), measured);
    };
    add("for a page of messages", start, page);
    add("of a run after its load: the commit", loaded, committed);
    add("of the next run before its commit, hot", committed, asked);
    add("of the next run, the commit", asked, end);
    let loads = loaded.round_trips - page.round_trips;
    let figure = format!("depth {depth}: round trips to load it for a run");
    let measured = format!("{loads} ({} statements)", loaded.executions - page.executions);
    report.aim(figure, measured, "2", loads <= 2);
    Ok(())
}

/// When the phases of a run were over, from its start.
#[derive(Debug)]
struct Phases {
    until_model: Duration,
    whole: Duration,
    /// What had passed to the database when the model was asked.
    passed: Option<Passed>,
    session_id: Uuid,
}

async fn continue_from(service: &Service, mock: &MockModel, base: Uuid, number: u64) -> Result<Phases> {
    let input = probe(number);
    let began = Instant::now();
    let ask = Ask {
        base: Some(base),
        input: &input,
        provider: FAST,
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
        base = Some(
            service
                .client
                .run(Ask {
                    base,
                    input: &input,
                    provider: FAST,
                })
                .await?
                .session_id,
        );
        times.push(began.elapsed());
        mock.take_arrival(number);
    }
    Ok((base.context("a conversation without turns")?, times))
}
