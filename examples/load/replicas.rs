//! Measures the gain of a further process of the service: runs of one turn at one process, and at
//! two that share a database.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use crate::CLIENTS;
use crate::bench::Bench;
use crate::client::{Ask, Client};
use crate::mock::FAST;
use crate::report::Report;
use crate::service::Service;

const MOST: usize = 2;

/// Measures the same clients, which call all processes in turn.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let mut services = Vec::new();
    for number in 1..=MOST {
        services.push(bench.start().await?);
        services[0].client.put_agent(&[]).await?;
        let replicas: Vec<&Service> = services.iter().collect();
        let clients: Vec<Client> = services.iter().map(|service| service.client.clone()).collect();
        let turn = Arc::new(AtomicUsize::new(0));
        let operation = move |()| {
            let client = clients[turn.fetch_add(1, Ordering::Relaxed) % clients.len()].clone();
            async move { client.run(Ask::of(FAST)).await.map(|_| ()) }
        };
        let measured = bench.load(&replicas, CLIENTS, operation).await?;
        measured.report(&format!("one turn, replicas: {number}"), report);
    }
    for service in services {
        service.stop().await?;
    }
    Ok(())
}
