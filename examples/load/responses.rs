//! The cost of the API of OpenAI: the same turn on `/v1/responses` and on `/v1/runs`.

use anyhow::Result;

use crate::CLIENTS;
use crate::bench::{Bench, Measured};
use crate::client::Ask;
use crate::mock::FAST;
use crate::report::{Report, clients_text, milliseconds};
use crate::service::Service;

/// The API that a turn uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    Runs,
    Responses,
}

use Api::{Responses, Runs};

/// Each API is measured once before the other, and once after it.
const ORDER: [Api; 4] = [Runs, Responses, Responses, Runs];

/// What turns on one API cost in milliseconds, added up over the times that it was measured.
#[derive(Debug, Default)]
struct Costs {
    p50: f64,
    cpu: f64,
}

/// Measures both, and how they compare.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let service = bench.start().await?;
    service.client.put_agent(&[]).await?;
    let (mut runs, mut responses) = (Costs::default(), Costs::default());
    for api in ORDER {
        let measured = api.load(bench, &service).await?;
        measured.report(&format!("{}, {}", api.turn(), clients_text(CLIENTS)), report);
        let costs = if api == Runs { &mut runs } else { &mut responses };
        costs.p50 += milliseconds(measured.runs.percentile(50));
        costs.cpu += milliseconds(measured.cpu.service);
    }
    let name = "a turn on /v1/responses over one on /v1/runs";
    report.add(format!("{name}: p50"), responses.p50 / runs.p50, "");
    report.add(format!("{name}: CPU of the service"), responses.cpu / runs.cpu, "");
    service.stop().await
}

impl Api {
    fn turn(self) -> &'static str {
        match self {
            Runs => "one turn on /v1/runs",
            Responses => "one turn on /v1/responses",
        }
    }

    /// Lets the common number of clients make turns.
    async fn load(self, bench: &Bench<'_>, service: &Service) -> Result<Measured> {
        let client = service.client.clone();
        let operation = move |()| {
            let client = client.clone();
            async move {
                match self {
                    Runs => client.run(Ask::of(FAST)).await.map(|_| ()),
                    Responses => client.respond().await,
                }
            }
        };
        bench.load(&[service], CLIENTS, operation).await
    }
}
