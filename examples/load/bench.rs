//! The setup of each group of figures: a fresh database, the service, the mock model; and the one
//! way in which a load is measured.

use std::time::Duration;

use anyhow::Result;

use crate::Options;
use crate::cpu::{CpuPerRun, CpuTimes};
use crate::database::Database;
use crate::mock::MockModel;
use crate::report::{Report, milliseconds};
use crate::sample::{Sample, count, repeat};
use crate::service::{Launcher, Service};

/// The load before the measured window: it opens connections and fills caches.
const WARM_UP: Duration = Duration::from_secs(2);

/// The setup of a group of figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) launcher: &'a Launcher,
    pub(crate) mock: &'a MockModel,
    pub(crate) http: &'a reqwest::Client,
    pub(crate) database: &'a Database,
}

/// A load that was measured.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) runs: Sample,
    pub(crate) cpu: CpuPerRun,
    /// The writes of a run; `None` on SQLite, where they are not counted.
    pub(crate) written: Option<Written>,
}

/// The writes of PostgreSQL for a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    /// The transactions that wrote.
    pub(crate) transactions: f64,
    /// The bytes of write-ahead log.
    pub(crate) log: f64,
}

impl Bench<'_> {
    /// Starts the service.
    pub(crate) async fn start(&self) -> Result<Service> {
        self.launcher.start(&self.database.url()).await
    }

    /// Reads the processor times so far.
    pub(crate) fn cpu_times(&self, services: &[&Service]) -> Result<CpuTimes> {
        CpuTimes::read(services, self.database.server_process())
    }

    /// Lets each client repeat an operation, which is one run, for the length of the window. An
    /// operation that fails fails the measurement.
    pub(crate) async fn load<S, F, R>(&self, services: &[&Service], clients: usize, operation: F) -> Result<Measured>
    where
        S: Default + Send + 'static,
        F: Fn(S) -> R + Clone + Send + 'static,
        R: Future<Output = Result<S>> + Send,
    {
        repeat(clients, WARM_UP, operation.clone()).await?;
        let (written, cpu) = (self.written().await?, self.cpu_times(services)?);
        let runs = repeat(clients, self.options.window(), operation).await?;
        let later = self.cpu_times(services)?;
        let number = count(runs.count().max(1));
        let written = written.zip(self.written().await?).map(|(from, to)| Written {
            transactions: (to.transactions - from.transactions) / number,
            log: (to.log - from.log) / number,
        });
        Ok(Measured {
            cpu: cpu.per_run(later, runs.count()),
            written,
            runs,
        })
    }

    /// Returns what the server has written so far.
    async fn written(&self) -> Result<Option<Written>> {
        match self.database {
            Database::Postgres(database) => Ok(Some(Written {
                transactions: count(database.write_transactions().await?),
                log: count(usize::try_from(database.wal_position().await?)?),
            })),
            Database::Sqlite(_) => Ok(None),
        }
    }
}

impl Measured {
    /// Adds the rate, with what a run cost, the times, and what a run wrote.
    pub(crate) fn report(&self, name: &str, report: &mut Report<'_>) {
        let rate = report.add(format!("{name}: rate"), self.runs.per_second(), "runs/s");
        rate.cpu_per_run(self.cpu);
        for percent in [50, 99] {
            let time = milliseconds(self.runs.percentile(percent));
            report.add(format!("{name}: p{percent}"), time, "ms");
        }
        if let Some(Written { transactions, log }) = self.written {
            report.add(format!("{name}: write transactions of a run"), transactions, "");
            report.add(format!("{name}: write-ahead log of a run"), log, "bytes");
        }
    }
}
