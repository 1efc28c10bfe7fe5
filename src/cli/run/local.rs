//! Runs in this process, on the configured store.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use tokio::time::timeout;

use super::outcome::{Ended, Shown, show_call};
use super::turn::{Runner, Turn};
use crate::app::{App, Extensions};
use crate::cli::item::Item;
use crate::cli::output::print_note;
use crate::cli::store;
use crate::config::Loaded;
use crate::lifecycle::StopSignals;
use crate::run::process;
use crate::run::read::Followed;
use crate::run::refusal::Refusal;
use crate::run::{RunHandle, control_run, start};
use agent::AgentEvent;
use agent::record::{RunControl, RunEventPayload, RunRecord, RunView};
use values::ids::RunId;
use values::tenant::TenantId;

/// A run that is being accepted. If nobody polls it, it stays as it is.
type Starting = Pin<Box<dyn Future<Output = Result<RunHandle, Refusal>>>>;

/// This process as the one that executes runs.
pub(super) struct Local {
    app: App,
    tenant: TenantId,
    grace: Duration,
    has_begun: bool,
    /// The run that is being accepted.
    starting: Option<Starting>,
    /// The last run that was accepted.
    run_id: Option<RunId>,
}

impl Local {
    /// Opens the store, and creates a missing one.
    pub(super) async fn open(loaded: Loaded, tenant: TenantId, extensions: Extensions) -> anyhow::Result<Self> {
        let overridden = loaded
            .unread_variables
            .iter()
            .filter(|unread| unread.overridden.is_some());
        for unread in overridden {
            print_note(format_args!("warning: {unread}"))?;
        }
        let config = loaded.config;
        let is_new = store::is_missing(&config)?;
        let app = App::build(&config, extensions).await?;
        store::name(&config, is_new)?;
        Ok(Self {
            app,
            tenant,
            grace: config.runs.shutdown_grace,
            has_begun: false,
            starting: None,
            run_id: None,
        })
    }

    /// Cancels a run that is being accepted, once it is accepted. Returns its id if it was.
    async fn cancel_once_accepted(&self, starting: impl Future<Output = Result<RunHandle, Refusal>>) -> Option<RunId> {
        let run_id = starting.await.ok()?.detach().summary.run_id;
        if let Err(error) = control_run(&self.app.runs, &self.tenant, run_id, RunControl::Cancel).await {
            tracing::warn!(%run_id, error = &error as &dyn Error, "a run can't be cancelled");
        }
        Some(run_id)
    }

    async fn lookup(&self, run_id: RunId) -> Option<Ended> {
        let record = self.app.runs.store.run_lookup(&self.tenant, run_id).await.ok()??;
        Item::of(&RunView::from(record)).ok()
    }
}

impl Runner for Local {
    async fn follow(&mut self, turn: &Turn<'_>, shown: &mut Shown) -> anyhow::Result<Ended> {
        if turn.is_queued() && !self.has_begun {
            process::begin(&self.app.runs);
            self.has_begun = true;
        }
        self.run_id = None;
        let (ctx, tenant, request) = (Arc::clone(&self.app.runs), self.tenant.clone(), turn.request());
        let starting = self
            .starting
            .insert(Box::pin(async move { start(&ctx, tenant, request).await }));
        let accepted = starting.await;
        self.starting = None;
        let handle = accepted?;
        self.run_id = Some(handle.run_id);
        Ok(Item::of(&RunView::from(follow(handle, shown).await?))?)
    }

    async fn close(mut self, error: Option<&anyhow::Error>, signals: &mut StopSignals) -> Option<Ended> {
        if let Some(starting) = self.starting.take() {
            tokio::select! {
                accepted = timeout(self.grace, self.cancel_once_accepted(starting)) => self.run_id = accepted.ok().flatten(),
                _ = signals.next() => self.grace = Duration::ZERO,
            }
        }
        tokio::select! {
            () = process::shut_down(&self.app.runs, self.grace) => (),
            _ = signals.next() => process::shut_down(&self.app.runs, Duration::ZERO).await,
        }
        let interrupted = match (error, self.run_id) {
            (Some(_), Some(run_id)) => self.lookup(run_id).await,
            _ => None,
        };
        self.app.disconnect().await;
        interrupted
    }
}

async fn follow(handle: RunHandle, shown: &mut Shown) -> anyhow::Result<RunRecord> {
    let (caller, mut events) = handle.into_events();
    while let Some(followed) = events.next().await {
        caller.note_sent(&followed);
        let event = match followed {
            Followed::Event(event) => event,
            Followed::Dropped { reason } => bail!("the run can't be followed any more: {reason}"),
        };
        if let Some(record) = event.payload.record() {
            return Ok((**record).clone());
        }
        if let RunEventPayload::Agent(event) = &event.payload {
            show(event, shown)?;
        }
    }
    bail!("the run ended without a result")
}

fn show(event: &AgentEvent, shown: &mut Shown) -> std::io::Result<()> {
    match event {
        AgentEvent::MessageDelta { text, .. } => shown.text(text),
        AgentEvent::ToolCallCompleted {
            name,
            arguments,
            is_error,
            ..
        } => show_call(name, arguments, *is_error),
        _ => Ok(()),
    }
}
