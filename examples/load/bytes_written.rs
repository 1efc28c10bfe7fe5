//! Bytes written per turn, early and late in one conversation: the rows that the turn added, and
//! the write-ahead log it caused.
//!
//! After a checkpoint PostgreSQL logs the whole of each page that is touched first. That is noise
//! of a few kilobytes a page, so the medians of several turns are compared, after runs that have
//! touched the pages.

use std::time::Duration;

use anyhow::Result;
use uuid::Uuid;

use crate::client::Ask;
use crate::mock::FAST;
use crate::postgres::PostgresDatabase;
use crate::report::Report;
use crate::sample::{count, median, repeat};
use crate::service::Launcher;

const EARLY: u64 = 10;
const LATE: u64 = 200;
/// The turns on each side of the measured one.
const AROUND: u64 = 4;
const TOLERANCE: f64 = 0.1;

/// Measures one conversation of a little more than 200 turns.
pub(crate) async fn measure(launcher: &Launcher, database: &PostgresDatabase, report: &mut Report) -> Result<()> {
    let service = launcher.start(&database.url(None)).await?;
    service.client.put_agent().await?;
    let client = service.client.clone();
    repeat(4, Duration::from_secs(2), move |base| {
        let client = client.clone();
        async move {
            Ok(Some(
                client
                    .run(Ask {
                        base,
                        input: "Warm up.",
                        provider: FAST,
                    })
                    .await?
                    .session_id,
            ))
        }
    })
    .await?;
    let mut base: Option<Uuid> = None;
    let (mut early, mut late) = (Turns::default(), Turns::default());
    for turn in 1..=LATE + AROUND {
        let turns = match turn {
            _ if turn.abs_diff(EARLY) <= AROUND => Some(&mut early),
            _ if turn.abs_diff(LATE) <= AROUND => Some(&mut late),
            _ => None,
        };
        let before = database.wal_position().await?;
        let input = "What is the weather like?";
        let session_id = service
            .client
            .run(Ask {
                base,
                input,
                provider: FAST,
            })
            .await?
            .session_id;
        let after = database.wal_position().await?;
        base = Some(session_id);
        if let Some(turns) = turns {
            turns.wal.push(count(usize::try_from(after - before)?));
            turns
                .rows
                .push(count(usize::try_from(database.row_bytes(session_id).await?)?));
        }
    }
    service.stop().await?;
    add("row bytes per turn", median(early.rows), median(late.rows), report);
    add("write-ahead log per turn", median(early.wal), median(late.wal), report);
    Ok(())
}

#[derive(Debug, Default)]
struct Turns {
    wal: Vec<f64>,
    rows: Vec<f64>,
}

fn add(figure: &str, early: f64, late: f64, report: &mut Report) {
    let ratio = late / early;
    let measured = format!(
        "{early:.0} at turn {EARLY}, {late:.0} at turn {LATE}: {:+.1} %",
        (ratio - 1.0) * 100.0
    );
    report.aim(figure, measured, "within 10 %", (ratio - 1.0).abs() <= TOLERANCE);
}
