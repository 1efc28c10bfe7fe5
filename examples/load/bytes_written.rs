//! Bytes written per turn, early and late in one conversation: the rows that the turn added, and
//! the write-ahead log it caused.
//!
//! After a checkpoint PostgreSQL logs the whole of each page that is touched first. That is noise
//! of a few kilobytes a page, so the medians of several turns are compared, after runs that have
//! touched the pages.

use std::time::Duration;

use anyhow::Result;
use uuid::Uuid;

use crate::bench::Bench;
use crate::client::Ask;
use crate::mock::FAST;
use crate::report::Report;
use crate::sample::{count, median, repeat};

const EARLY: u64 = 10;
const LATE: u64 = 200;
/// The turns on each side of the measured one.
const AROUND: u64 = 4;

/// Measures one conversation of a little more than 200 turns.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let service = bench.start().await?;
    service.client.put_agent(&[]).await?;
    let client = service.client.clone();
    let warm_up = move |base| {
        let client = client.clone();
        async move { Ok(Some(client.run(Ask { base, ..Ask::of(FAST) }).await?.session_id)) }
    };
    repeat(4, Duration::from_secs(2), warm_up).await?;
    let database = bench.database.postgres()?;
    let mut base: Option<Uuid> = None;
    let (mut early, mut late) = (Turns::default(), Turns::default());
    for turn in 1..=LATE + AROUND {
        let turns = match turn {
            _ if turn.abs_diff(EARLY) <= AROUND => Some(&mut early),
            _ if turn.abs_diff(LATE) <= AROUND => Some(&mut late),
            _ => None,
        };
        let ask = Ask { base, ..Ask::of(FAST) };
        let Some(turns) = turns else {
            base = Some(service.client.run(ask).await?.session_id);
            continue;
        };
        let (rows, wal) = (database.row_bytes().await?, database.wal_position().await?);
        base = Some(service.client.run(ask).await?.session_id);
        turns.wal.push(difference(wal, database.wal_position().await?)?);
        turns.rows.push(difference(rows, database.row_bytes().await?)?);
    }
    service.stop().await?;
    add("row bytes", early.rows, late.rows, report);
    add("write-ahead log", early.wal, late.wal, report);
    Ok(())
}

/// The bytes of each of some turns.
#[derive(Debug, Default)]
struct Turns {
    wal: Vec<f64>,
    rows: Vec<f64>,
}

fn difference(before: i64, after: i64) -> Result<f64> {
    Ok(count(usize::try_from(after - before)?))
}

fn add(what: &str, early: Vec<f64>, late: Vec<f64>, report: &mut Report<'_>) {
    let (early, late) = (median(early), median(late));
    report.add(format!("{what}, turn {EARLY}"), early, "bytes");
    report.add(format!("{what}, turn {LATE} over turn {EARLY}"), late / early, "times");
}
