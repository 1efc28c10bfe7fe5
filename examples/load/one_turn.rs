//! Runs of one completion: per second, their times and their cost, with few and many clients.

use anyhow::Result;
use uuid::Uuid;

use crate::CLIENTS;
use crate::bench::Bench;
use crate::client::Ask;
use crate::mock::FAST;
use crate::report::{Report, clients_text, milliseconds};

const MANY_CLIENTS: usize = 64;
/// A conversation of this length is left for a new one, so that the figure is that of common
/// conversations.
const TURNS: usize = 20;

/// Measures new sessions and continued ones.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let service = bench.start().await?;
    service.client.put_agent(&[]).await?;
    for clients in [1, CLIENTS, MANY_CLIENTS] {
        let client = service.client.clone();
        let operation = move |()| {
            let client = client.clone();
            async move { client.run(Ask::of(FAST)).await.map(|_| ()) }
        };
        let measured = bench.load(&[&service], clients, operation).await?;
        let name = format!("one turn, {}", clients_text(clients));
        measured.report(&name, report);
        if clients == CLIENTS {
            let cpu = milliseconds(measured.cpu.service);
            report.add(format!("{name}: CPU of the service"), cpu, "ms");
        }
        if clients == CLIENTS && bench.database.server_process().is_some() {
            let cpu = milliseconds(measured.cpu.database);
            report.add(format!("{name}: CPU of PostgreSQL"), cpu, "ms");
        }
    }
    let client = service.client.clone();
    let operation = move |(base, turns): (Option<Uuid>, usize)| {
        let client = client.clone();
        async move {
            let answer = client.run(Ask { base, ..Ask::of(FAST) }).await?;
            Ok(if turns + 1 < TURNS {
                (Some(answer.session_id), turns + 1)
            } else {
                (None, 0)
            })
        }
    };
    let measured = bench.load(&[&service], CLIENTS, operation).await?;
    measured.report(&format!("a further turn, {CLIENTS} clients"), report);
    service.stop().await
}
