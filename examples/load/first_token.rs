//! How much later than the model sent it the first token reaches the caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;

use crate::CLIENTS;
use crate::bench::Bench;
use crate::client::Ask;
use crate::mock::{PACED, probe};
use crate::report::{Report, clients_text, milliseconds};
use crate::sample::Sample;

/// Measures with one client and with several.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let service = bench.start().await?;
    service.client.put_agent(&[]).await?;
    let probes = Arc::new(AtomicU64::new(1));
    for clients in [1, CLIENTS] {
        let delays = Arc::new(Mutex::new(Vec::new()));
        let (client, mock) = (service.client.clone(), bench.mock.clone());
        let (probes, collected) = (Arc::clone(&probes), Arc::clone(&delays));
        let operation = move |()| {
            let (client, mock, collected) = (client.clone(), mock.clone(), Arc::clone(&collected));
            let number = probes.fetch_add(1, Ordering::Relaxed);
            async move {
                let input = probe(number);
                let ask = Ask {
                    input: &input,
                    ..Ask::of(PACED)
                };
                let mut events = client.stream(ask).await?;
                events.until("message.delta").await?;
                let received = Instant::now();
                let sent = mock.take_first_token(number);
                let sent = sent.context("a token that the model never sent")?;
                collected.lock().push(received.saturating_duration_since(sent));
                events.until("run.completed").await
            }
        };
        let measured = bench.load(&[&service], clients, operation).await?;
        // Those of the warm-up came first.
        let mut delays = std::mem::take(&mut *delays.lock());
        let delays = delays.split_off(delays.len() - measured.runs.count());
        let delays = Sample::new(measured.runs.window, delays);
        let name = format!("first token after the model sent it, {}", clients_text(clients));
        for percent in [50, 99] {
            let delay = milliseconds(delays.percentile(percent));
            report.add(format!("{name}: p{percent}"), delay, "ms");
        }
    }
    service.stop().await
}
