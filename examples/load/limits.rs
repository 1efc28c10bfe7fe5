//! The limits of the machine itself, measured beside each group of figures: how many single rows a
//! database commits, and how many completions the mock model sends.

use std::time::Duration;

use anyhow::Result;

use crate::CLIENTS;
use crate::database::{Database, Engine};
use crate::mock::{FAST, MockModel};
use crate::report::progress;
use crate::sample::repeat;

const WINDOW: Duration = Duration::from_secs(1);

/// The limits at one time, per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Commits of one row of 4 KB.
    pub(crate) commits: f64,
    /// Completions of the mock model, asked without the service.
    pub(crate) completions: f64,
}

/// Measures the limits with a database of its own, so that no figure has its rows.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    database: Database,
    mock: &'a MockModel,
    http: &'a reqwest::Client,
}

impl<'a> Machine<'a> {
    /// Creates the database.
    pub(crate) async fn new(engine: &Engine, mock: &'a MockModel, http: &'a reqwest::Client) -> Result<Self> {
        Ok(Self {
            database: engine.create().await?,
            mock,
            http,
        })
    }

    /// Describes the engine in one line.
    pub(crate) async fn describe(&self) -> Result<String> {
        self.database.describe().await
    }

    /// Measures both limits.
    pub(crate) async fn limits(&self) -> Result<Limits> {
        let limits = Limits {
            commits: self.database.commit_limit(CLIENTS, WINDOW).await?.per_second(),
            completions: self.completions().await?,
        };
        progress(&format!(
            "the machine: {:.0} commits/s, {:.0} completions/s",
            limits.commits, limits.completions
        ));
        Ok(limits)
    }

    /// Removes the database.
    pub(crate) async fn remove(self) -> Result<()> {
        self.database.remove().await
    }

    async fn completions(&self) -> Result<f64> {
        let url = format!("{}/chat/completions", self.mock.base_url(FAST));
        let http = self.http.clone();
        let sample = repeat(CLIENTS, WINDOW, move |()| {
            let request = http
                .post(&url)
                .body(r#"{"model":"fast","messages":[{"role":"user","content":"x"}],"stream":true}"#);
            async move {
                request.send().await?.error_for_status()?.bytes().await?;
                Ok(())
            }
        });
        Ok(sample.await?.per_second())
    }
}
