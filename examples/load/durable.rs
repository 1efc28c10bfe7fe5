//! Runs of which each step is persisted: per second, and how many transactions a run writes.

use anyhow::Result;

use crate::CLIENTS;
use crate::bench::Bench;
use crate::client::Ask;
use crate::mock::{FAST, READING, READING_TOOL, WRITING, WRITING_TOOL};
use crate::report::{Report, clients_text};
use crate::tool_steps;

/// The kinds of runs, each with the provider that causes it.
const KINDS: [(&str, &str); 3] = [
    ("one step", FAST),
    ("three tool steps", READING),
    ("three tool steps with effects", WRITING),
];

/// Measures each kind of run with one client, whose writes nobody shares, and with several.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let service = bench.start().await?;
    service.client.put_agent(&[READING_TOOL, WRITING_TOOL]).await?;
    for (kind, provider) in KINDS {
        for clients in [1, CLIENTS] {
            let client = service.client.clone();
            let operation = move |()| {
                let client = client.clone();
                let ask = Ask {
                    durable: true,
                    ..Ask::of(provider)
                };
                async move {
                    if provider == FAST {
                        client.run(ask).await.map(|_| ())
                    } else {
                        tool_steps::run(&client, ask).await
                    }
                }
            };
            let measured = bench.load(&[&service], clients, operation).await?;
            measured.report(&format!("durable, {kind}, {}", clients_text(clients)), report);
        }
    }
    service.stop().await
}
