//! The events of every run can be read again from the first to the terminal one, without a gap.

use anyhow::Result;
use futures_util::StreamExt as _;
use futures_util::stream;

use super::{Findings, Stored};
use crate::client::Client;
use crate::facts::{Facts, ReadEvent};
use crate::random::Random;
use crate::stream::Reading;

/// How many streams are read at the same time.
const READERS: usize = 8;

/// Reads the events of every run again.
pub(super) async fn check(facts: &[Facts], stored: &Stored, client: &Client, findings: &mut Findings) -> Result<()> {
    let ended = facts.iter().filter_map(|fact| Some((fact, fact.run?.run_id)));
    let readings = ended.map(|(fact, run_id)| async move {
        let mut reading = Reading::default();
        let mut random = Random::new(fact.request.number, 3);
        let read = reading.read_to_the_end(client, &mut random, run_id, false).await;
        (fact, run_id, reading, read)
    });
    let mut readings = stream::iter(readings).buffer_unordered(READERS);
    while let Some((fact, run_id, reading, read)) = readings.next().await {
        if let Err(error) = read {
            findings.violation(fact, format!("reading its events again: {error:#}"));
        }
        for fault in &reading.faults {
            findings.violation(fact, format!("reading its events again: {fault}"));
        }
        let count = stored.runs.get(&run_id).map_or(0, |run| run.event_count);
        if u64::try_from(count).ok() != reading.events.last().map(|event| event.sequence) {
            findings.violation(fact, format!("{} events were read of {count}", reading.events.len()));
        }
        if reading.events.first().is_none_or(|event| event.name != "run.started") {
            findings.violation(fact, "its first event is not its start");
        }
        if fact.end().is_some() && fact.events.last() != reading.events.last() {
            let of = |events: &[ReadEvent]| events.last().and_then(|event| event.text.clone()).unwrap_or_default();
            let words = "its terminal event is another one than its caller read";
            findings.violation(
                fact,
                format!("{words}\n    {}\n    {}", of(&reading.events), of(&fact.events)),
            );
        }
        findings.events += reading.events.len();
        findings.different_events += fact
            .events
            .iter()
            .zip(&reading.events)
            .filter(|(live, later)| live != later)
            .count();
    }
    Ok(())
}
