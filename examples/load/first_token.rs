//! How much later than the model sent it the first token reaches the caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::sync::Mutex;

use crate::client::Ask;
use crate::mock::{MockModel, PACED, probe};
use crate::report::{Report, milliseconds};
use crate::sample::{Sample, repeat};
use crate::service::Launcher;

const WINDOW: Duration = Duration::from_secs(10);
const WARM_UP: Duration = Duration::from_secs(1);
const AIM: Duration = Duration::from_millis(1);

/// Measures with one client and with several.
pub(crate) async fn measure(
    launcher: &Launcher,
    mock: &MockModel,
    url: &str,
    clients: usize,
    report: &mut Report,
) -> Result<()> {
    let service = launcher.start(url).await?;
    service.client.put_agent().await?;
    let probes = Arc::new(AtomicU64::new(1));
    for clients in [1, clients] {
        let delays = Arc::new(Mutex::new(Vec::new()));
        let (client, mock, probes, collected) = (
            service.client.clone(),
            mock.clone(),
            Arc::clone(&probes),
            Arc::clone(&delays),
        );
        let operation = move |()| {
            let (client, mock, collected) = (client.clone(), mock.clone(), Arc::clone(&collected));
            let number = probes.fetch_add(1, Ordering::Relaxed);
            async move {
                let input = probe(number);
                let mut events = client
                    .stream(Ask {
                        base: None,
                        input: &input,
                        provider: PACED,
                    })
                    .await?;
                events.until("message.delta").await?;
                let received = Instant::now();
                let sent = mock
                    .take_first_token(number)
                    .context("a token that the model never sent")?;
                collected.lock().await.push(received.saturating_duration_since(sent));
                events.until("run.completed").await
            }
        };
        repeat(clients, WARM_UP, operation.clone()).await?;
        delays.lock().await.clear();
        let runs = repeat(clients, WINDOW, operation).await?;
        let delays = Sample::new(runs.window, std::mem::take(&mut *delays.lock().await));
        let (median, late) = (delays.median(), delays.percentile(99));
        let measured = format!(
            "median {}, p99 {} ({:.0} runs/s)",
            milliseconds(median),
            milliseconds(late),
            runs.per_second()
        );
        let figure = format!("first token after the model sent it, streaming clients: {clients}");
        report.aim(figure, measured, "<= 1 ms", median <= AIM);
    }
    service.stop().await
}
