//! Sends finished spans in batches. Never makes a run or a request wait: what the queue does not
//! hold is dropped and counted.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::collector::Collector;
use crate::metrics::Metrics;
use net::outgoing::ClientError;

/// The name of the service, if the standard variables do not set one.
const SERVICE_NAME: &str = "agent-runtime";
/// The most spans that wait to be sent.
const QUEUE: usize = 4_096;
/// The most spans of a request to the collector.
const BATCH: usize = 512;
/// How long spans are collected before they are sent.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the last spans may take at the end of the process.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// No spans can be sent.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the HTTP client for spans can't be made")]
    Client(#[from] ClientError),
    #[error("the standard variables for OTLP can't be used")]
    Variables(#[from] ExporterBuildError),
}

/// Takes finished spans.
#[derive(Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<SpanData>,
    metrics: Option<Arc<Metrics>>,
}

/// Sends the spans of a queue.
#[derive(Debug)]
pub(super) struct Exporter {
    receiver: mpsc::Receiver<SpanData>,
    client: SpanExporter,
    metrics: Option<Arc<Metrics>>,
}

/// Makes a queue and what sends its spans, as the standard variables say.
pub(super) fn queue(has_service_name: bool, metrics: Option<Arc<Metrics>>) -> Result<(Queue, Exporter), ExportError> {
    let builder = SpanExporter::builder().with_http().with_http_client(Collector::new()?);
    let mut client = builder.build()?;
    let resource = if has_service_name {
        Resource::builder()
    } else {
        Resource::builder().with_service_name(SERVICE_NAME)
    };
    client.set_resource(&resource.build());
    let (sender, receiver) = mpsc::channel(QUEUE);
    let queue = Queue {
        sender,
        metrics: metrics.clone(),
    };
    let exporter = Exporter {
        receiver,
        client,
        metrics,
    };
    Ok((queue, exporter))
}

impl Queue {
    pub(super) fn add(&self, span: SpanData) {
        if self.sender.try_send(span).is_err()
            && let Some(metrics) = &self.metrics
        {
            metrics.spans_dropped(1);
        }
    }
}

impl Exporter {
    /// Sends spans until `ended`, and then those that are left.
    pub(super) async fn run(self, ended: CancellationToken) {
        let is_late = async {
            ended.cancelled().await;
            sleep(LAST_SPANS).await;
        };
        tokio::select! {
            () = self.send_all(&ended) => (),
            () = is_late => tracing::warn!("the last spans could not be sent in time"),
        }
    }

    async fn send_all(mut self, ended: &CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        while ended
            .run_until_cancelled(self.receiver.recv_many(&mut batch, BATCH))
            .await
            .is_some()
        {
            if batch.len() < BATCH {
                // More spans of the same time soon follow.
                let _ = ended.run_until_cancelled(sleep(PAUSE)).await;
            }
            self.fill(&mut batch);
            self.send(std::mem::take(&mut batch)).await;
        }
        self.fill(&mut batch);
        while !batch.is_empty() {
            self.send(std::mem::take(&mut batch)).await;
            self.fill(&mut batch);
        }
    }

    /// Adds the spans that wait now.
    fn fill(&mut self, batch: &mut Vec<SpanData>) {
        while batch.len() < BATCH
            && let Ok(span) = self.receiver.try_recv()
        {
            batch.push(span);
        }
    }

    async fn send(&self, batch: Vec<SpanData>) {
        let spans = batch.len();
        // The collector's client logs why.
        if self.client.export(batch).await.is_err()
            && let Some(metrics) = &self.metrics
        {
            metrics.spans_dropped(spans as u64);
        }
    }
}
