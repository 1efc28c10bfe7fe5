//! Runs with three steps that each call a tool, and an answer.

use anyhow::{Result, ensure};

use crate::CLIENTS;
use crate::bench::Bench;
use crate::client::{Ask, Client};
use crate::mock::{READING, READING_TOOL};
use crate::report::Report;

/// The steps of a run: three with a call, and the answer.
const STEPS: u64 = 4;

/// Measures runs that call a tool which only reads.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let service = bench.start().await?;
    service.client.put_agent(&[READING_TOOL]).await?;
    let client = service.client.clone();
    let operation = move |()| {
        let client = client.clone();
        async move { run(&client, Ask::of(READING)).await }
    };
    let measured = bench.load(&[&service], CLIENTS, operation).await?;
    measured.report(&format!("three tool steps, {CLIENTS} clients"), report);
    service.stop().await
}

/// Runs to the end, with as many steps as there should be.
pub(crate) async fn run(client: &Client, ask: Ask<'_>) -> Result<()> {
    let steps = client.run(ask).await?.step_count;
    ensure!(steps == STEPS, "a run had {steps} steps and not {STEPS}");
    Ok(())
}
