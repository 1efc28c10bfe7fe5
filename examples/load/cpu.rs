//! Processor time by process, as the kernel's scheduler has counted it.

use std::time::Duration;

use anyhow::Result;

use crate::mock;
use crate::procfs;
use crate::sample::count;
use crate::service::Service;

/// The processor time that everything on this machine that takes part has used so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTimes {
    service: Duration,
    database: Duration,
    model: Duration,
    load: Duration,
}

/// The processor time of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuPerRun {
    /// All processes of the service.
    pub(crate) service: Duration,
    /// All processes of PostgreSQL. Nothing where the database is on another machine, or is SQLite.
    pub(crate) database: Duration,
    /// The threads of the mock model.
    model: Duration,
    /// The clients: the rest of this process.
    load: Duration,
}

impl CpuTimes {
    /// Reads the times. `server` is the first process of PostgreSQL.
    pub(crate) fn read(services: &[&Service], server: Option<u32>) -> Result<Self> {
        let mut service = Duration::ZERO;
        for process in services {
            service += process.cpu_time()?;
        }
        let this = std::process::id();
        let model = procfs::cpu_time_of_threads(this, mock::THREADS)?;
        Ok(Self {
            service,
            database: server.map_or(Ok(Duration::ZERO), procfs::cpu_time_with_children)?,
            model,
            load: procfs::cpu_time(this)?.saturating_sub(model),
        })
    }

    /// Divides what was used from these times to later ones by a number of runs.
    pub(crate) fn per_run(self, later: Self, runs: usize) -> CpuPerRun {
        let share = |from: Duration, to: Duration| to.saturating_sub(from).div_f64(count(runs.max(1)));
        CpuPerRun {
            service: share(self.service, later.service),
            database: share(self.database, later.database),
            model: share(self.model, later.model),
            load: share(self.load, later.load),
        }
    }
}

impl CpuPerRun {
    /// Returns the times in the order in which they are shown.
    pub(crate) fn in_order(self) -> [Duration; 4] {
        [self.service, self.database, self.model, self.load]
    }
}
