//! Measures the space of a conversation on disk, beside its text.

use anyhow::Result;

use crate::bench::Bench;
use crate::client::Ask;
use crate::mock::{WORDY, WORDY_BYTES};
use crate::report::{Report, kilobytes};
use crate::words::words;

const TURNS: usize = 200;
/// So many that a page which is not full counts little.
const CONVERSATIONS: u64 = 5;

/// Measures conversations of random words, of which the user and the model say half each.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let service = bench.start().await?;
    service.client.put_agent(&[]).await?;
    // What every run shares is written before.
    service.client.run(Ask::of(WORDY)).await?;
    let database = bench.database.postgres()?;
    let before = database.size().await?;
    for _ in 0..CONVERSATIONS {
        let mut base = None;
        for _ in 0..TURNS {
            let input = words(WORDY_BYTES);
            let ask = Ask {
                base,
                input: &input,
                ..Ask::of(WORDY)
            };
            base = Some(service.client.run(ask).await?.session_id);
        }
    }
    let added = (database.size().await? - before) / CONVERSATIONS;
    service.stop().await?;
    let text = u64::try_from(2 * WORDY_BYTES * TURNS)?;
    let name = format!("{TURNS} turns of 2 KB");
    report.add(format!("{name}: tables and indexes"), kilobytes(added), "KB");
    report.add(format!("{name}: the text itself"), kilobytes(text), "KB");
    Ok(())
}
