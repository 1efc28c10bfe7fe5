//! Runs at a service. If the connection breaks, the command connects again and goes on reading
//! after the last event that it has.

use std::borrow::Cow;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};

use super::outcome::{Ended, Shown, show_call};
use super::turn::{Runner, Turn};
use crate::cli::output::{EndedBySignal, is_broken_pipe, print_note};
use crate::cli::service::{MAX_BODY, Service, ServiceError};
use crate::lifecycle::StopSignals;
use agent::record::RunStatus;
use models::SseDecoder;
use net::outgoing::{HeaderMap, HeaderValue, Method, OutgoingResponse};
use values::ids::RunId;

/// How many times in a row the command connects again without reading a new event.
const TRIES: usize = 8;
/// The pauses before these tries: they double, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long stopping an interrupted run may take.
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// A service as the one that executes runs.
pub(super) struct Remote<'a> {
    service: &'a Service,
    /// The last run that has begun.
    run_id: Option<RunId>,
    /// The number of the last event.
    sequence: u64,
    /// The pauses before further tries to connect; `None` if none was made since that event.
    pauses: Option<ExponentialBackoff>,
}

/// An event of a run.
#[derive(Deserialize)]
struct Event<'a> {
    run_id: RunId,
    sequence: Option<u64>,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct MessageDelta<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ToolCallCompleted<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Cow<'a, str>,
    is_error: bool,
}

impl<'a> Remote<'a> {
    pub(super) fn new(service: &'a Service) -> Self {
        Self {
            service,
            run_id: None,
            sequence: 0,
            pauses: None,
        }
    }

    /// Reads events up to the end of the run; `None` if the stream ends before.
    async fn read(&mut self, response: OutgoingResponse, shown: &mut Shown) -> anyhow::Result<Option<Ended>> {
        let service = self.service;
        service.require(&response, "text/event-stream")?;
        let mut decoder = SseDecoder::new(MAX_BODY);
        let mut pieces = pin!(service.pieces(response));
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            let mut rest = &piece[..];
            while let Some(frame) = decoder.next(&mut rest).map_err(|error| service.unreadable(&error))? {
                if let Some(ended) = self.take(&frame.data, shown)? {
                    return Ok(Some(ended));
                }
            }
        }
        Ok(None)
    }

    /// Shows an event. Returns the run if the event is its end.
    fn take(&mut self, data: &str, shown: &mut Shown) -> anyhow::Result<Option<Ended>> {
        let event: Event<'_> = self.parsed(data)?;
        self.run_id = Some(event.run_id);
        if let Some(sequence) = event.sequence {
            self.sequence = sequence;
            self.pauses = None;
        }
        match &*event.kind {
            "message.delta" => {
                let delta: MessageDelta<'_> = self.parsed(event.data.get())?;
                shown.text(&delta.text)?;
            }
            "tool_call.completed" => {
                let call: ToolCallCompleted<'_> = self.parsed(event.data.get())?;
                show_call(&call.name, &call.arguments, call.is_error)?;
            }
            "run.completed" | "run.stopped" | "run.waiting" | "run.failed" | "run.cancelled" => {
                return Ok(Some(self.parsed(event.data.get())?));
            }
            _ => (),
        }
        Ok(None)
    }

    fn parsed<'de, T: Deserialize<'de>>(&self, json: &'de str) -> Result<T, ServiceError> {
        serde_json::from_str(json).map_err(|error| self.service.unreadable(&error))
    }

    /// Continues a stream that ended before its run.
    async fn reopen(&mut self, mut broken: anyhow::Error) -> anyhow::Result<OutgoingResponse> {
        let Some(run_id) = self.run_id else {
            return Err(broken.context("the run may have begun, and its id is not known"));
        };
        if self.pauses.is_none() {
            print_note("the stream of the run broke: connecting again")?;
        }
        while let Some(pause) = self.pauses.get_or_insert_with(pauses).next() {
            sleep(pause).await;
            let mut headers = HeaderMap::new();
            headers.insert("last-event-id", HeaderValue::from(self.sequence));
            let path = format!("/v1/runs/{run_id}/events");
            match self.service.send(Method::GET, &path, None, headers).await {
                Err(error) if error.may_pass() => broken = error.into(),
                opened => return Ok(opened?),
            }
        }
        Err(broken.context(format!("the run {run_id} can't be followed any more")))
    }

    /// Stops the run and waits for its end. A run that waits for its thread stays `queued`.
    async fn stop(&self, run_id: RunId) -> Result<Ended, ServiceError> {
        let stopped: Ended = self.service.post(&format!("/v1/runs/{run_id}/stop")).await?;
        let is_running = stopped.fields.status == RunStatus::Running;
        let wait = if is_running { "?wait=10s" } else { "" };
        // The key may be allowed to stop runs, but not to read them.
        Ok(self
            .service
            .get(&format!("/v1/runs/{run_id}{wait}"))
            .await
            .unwrap_or(stopped))
    }
}

impl Runner for Remote<'_> {
    async fn follow(&mut self, turn: &Turn<'_>, shown: &mut Shown) -> anyhow::Result<Ended> {
        (self.run_id, self.sequence, self.pauses) = (None, 0, None);
        let (path, body) = turn.body();
        let body = Some(body.to_string());
        let mut response = self.service.send(Method::POST, &path, body, HeaderMap::new()).await?;
        loop {
            let broken = match self.read(response, shown).await {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) => anyhow::anyhow!("the stream ended before the run"),
                Err(error) if error.downcast_ref().is_some_and(ServiceError::may_pass) => error,
                Err(error) => return Err(error),
            };
            response = self.reopen(broken).await?;
            if response.status() == 204 {
                let run_id = self.run_id.context("the run has no id")?;
                return Ok(self.service.get(&format!("/v1/runs/{run_id}")).await?);
            }
        }
    }

    async fn close(self, error: Option<&anyhow::Error>, signals: &mut StopSignals) -> Option<Ended> {
        let is_interrupted = error.is_some_and(|error| error.is::<EndedBySignal>() || is_broken_pipe(error));
        // Without an id, the service stops the run when nobody has read its events for a while.
        let run_id = self.run_id.filter(|_| is_interrupted)?;
        let stopped = tokio::select! {
            stopped = timeout(STOP_PATIENCE, self.stop(run_id)) => stopped.ok()?,
            _ = signals.next() => return None,
        };
        if let Err(error) = &stopped {
            // If standard error is closed, there is no other output.
            let _ = print_note(format_args!("warning: the run {run_id} can't be stopped: {error}"));
        }
        stopped.ok()
    }
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_max_times(TRIES)
        .build()
}
