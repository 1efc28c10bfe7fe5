//! The traces of the process: which requests are recorded, and their spans.

use std::sync::Arc;

use opentelemetry::Context;
use opentelemetry::trace::{SpanId, SpanKind, TraceContextExt as _, TraceId};
use opentelemetry_sdk::trace::{Config, SamplingDecision, ShouldSample};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::exporter::{ExportError, Exporter, Queue, queue};
use super::genai;
use super::run_spans::{Conversation, ProviderSpans, RunSpans};
use super::settings::TraceSettings;
use super::span::{SpanDraft, ids, linked, remote};
use crate::metrics::Metrics;
use agent::record::{RunEventPayload, RunSummary};
use agent::{AgentEvent, TracedWork};
use values::clock::{Clock, Timestamp};
use values::ids::{AgentId, IdSource};
use values::tenant::TenantId;
use values::trace_context::TraceContext;

/// Records requests and runs.
#[derive(Debug)]
pub struct Traces {
    queue: Queue,
    /// Taken when sending begins.
    exporter: Mutex<Option<Exporter>>,
    sampler: Box<dyn ShouldSample>,
    providers: Arc<ProviderSpans>,
    settings: TraceSettings,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

/// A request in progress.
#[derive(Debug)]
pub struct ServerSpan {
    /// The position of the request, for its log line and for what it starts.
    pub context: TraceContext,
    caller: Option<TraceContext>,
    is_continued: bool,
    began: Timestamp,
}

/// The spans of a run in progress.
#[derive(Debug)]
pub struct RunTrace {
    traces: Arc<Traces>,
    spans: Mutex<RunSpans>,
}

/// Reports whether spans can be sent as the standard variables say.
pub fn check(settings: TraceSettings) -> Result<(), ExportError> {
    if settings.has_collector {
        queue(settings.has_service_name, None)?;
    }
    Ok(())
}

impl Traces {
    /// Makes the traces of a process. Sends nothing yet.
    pub fn new(
        settings: TraceSettings,
        providers: ProviderSpans,
        metrics: Option<Arc<Metrics>>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Result<Self, ExportError> {
        let (queue, exporter) = queue(settings.has_service_name, metrics)?;
        Ok(Self {
            queue,
            exporter: Mutex::new(Some(exporter)),
            // Reads the standard variables.
            sampler: Config::default().sampler,
            providers: Arc::new(providers),
            settings,
            clock,
            ids,
        })
    }

    /// Sends spans until `ended`, and then those that are left.
    pub async fn send(self: Arc<Self>, ended: CancellationToken) {
        let exporter = self.exporter.lock().take();
        if let Some(exporter) = exporter {
            exporter.run(ended).await;
        }
    }

    /// Begins the span of a request.
    pub fn begin(&self, caller: Option<TraceContext>) -> ServerSpan {
        let continued = self.trusted(caller);
        let trace_id = continued.map_or_else(|| self.fresh().trace_id, |caller| caller.trace_id);
        let is_sampled = self.is_sampled(TraceId::from_bytes(trace_id.to_bytes()), continued);
        ServerSpan {
            context: TraceContext {
                trace_id,
                span_id: self.fresh().span_id,
                is_sampled,
            },
            caller,
            is_continued: continued.is_some(),
            began: self.now(),
        }
    }

    /// Returns the trace of a caller, if it is continued.
    pub(super) fn trusted(&self, caller: Option<TraceContext>) -> Option<TraceContext> {
        caller.filter(|_| self.settings.trust_traceparent)
    }

    /// Makes new ids. The last half of an id of version 7 is random.
    pub(super) fn fresh(&self) -> TraceContext {
        TraceContext::root(self.ids.next_uuid().as_u128(), true)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Sends a span that has ended.
    pub(super) fn add(&self, span: SpanDraft) {
        self.queue.add(span.finish());
    }

    pub(super) fn is_sampled(&self, trace_id: TraceId, parent: Option<TraceContext>) -> bool {
        let parent = parent.map(|parent| Context::new().with_remote_span_context(remote(&parent)));
        let result = self
            .sampler
            .should_sample(parent.as_ref(), trace_id, "request", &SpanKind::Server, &[], &[]);
        result.decision == SamplingDecision::RecordAndSample
    }

    /// Ends the span of a request.
    pub fn end(&self, request: &ServerSpan, method: &str, route: &str, status: u16, problem: Option<&'static str>) {
        if !request.context.is_sampled {
            return;
        }
        let (trace_id, span_id) = ids(&request.context);
        let parent = request.caller.as_ref().filter(|_| request.is_continued).map(ids);
        let parent = parent.map_or(SpanId::INVALID, |(_, span_id)| span_id);
        let mut span = SpanDraft::new(trace_id, span_id, parent, request.began, self.now());
        span.kind = SpanKind::Server;
        span.name = format!("{method} {route}").into();
        span.links.links.extend(request.linked_trace().as_ref().map(linked));
        span.error = (status >= 500).then(|| problem.map_or_else(|| status.to_string(), str::to_owned));
        span.set(genai::HTTP_METHOD, Some(method.to_owned()));
        span.set(genai::HTTP_ROUTE, Some(route.to_owned()));
        span.set(genai::HTTP_STATUS, Some(i64::from(status)));
        self.add(span);
    }

    /// Begins the spans of a run, unless its request is not recorded.
    pub fn run(
        self: &Arc<Self>,
        run: &RunSummary,
        tenant: &TenantId,
        request: Option<&TraceContext>,
    ) -> Option<RunTrace> {
        let is_sampled = match request {
            Some(request) => request.is_sampled,
            None => self.is_sampled(TraceId::from_bytes(*run.run_id.as_uuid().as_bytes()), None),
        };
        is_sampled.then(|| RunTrace {
            traces: Arc::clone(self),
            spans: Mutex::new(RunSpans::new(run, tenant, request, Arc::clone(&self.providers))),
        })
    }
}

impl ServerSpan {
    /// The trace of the caller, if this span is not in it.
    pub fn linked_trace(&self) -> Option<TraceContext> {
        self.caller.filter(|_| !self.is_continued)
    }
}

impl RunTrace {
    /// Sets the conversation of a run without a thread.
    pub fn set_conversation(&self, conversation: Conversation) {
        self.spans.lock().set_conversation(conversation);
    }

    /// Links the run to the one whose calls it answers.
    pub fn link(&self, answered: &TraceContext) {
        self.spans.lock().link(answered);
    }

    /// Returns the span of some work of the run's own agent, or of a subagent.
    pub fn span_of(&self, agent_id: Option<AgentId>, work: TracedWork<'_>) -> Option<TraceContext> {
        self.spans.lock().span_of(agent_id, work)
    }

    /// Returns the span of the run's own agent.
    pub fn context(&self) -> Option<TraceContext> {
        self.span_of(None, TracedWork::Execution)
    }

    /// Records an event of the run. Those of subagents come by [`Self::note_subagent`].
    pub fn note(&self, event: &RunEventPayload, at: Timestamp) {
        if matches!(event, RunEventPayload::Agent(AgentEvent::SubagentEvent { .. })) {
            return;
        }
        for span in self.spans.lock().note(event, at) {
            self.traces.queue.add(span);
        }
    }

    /// Records an event in the execution of a subagent.
    pub fn note_subagent(&self, agent_id: AgentId, event: &AgentEvent) {
        let at = self.traces.clock.now();
        for span in self.spans.lock().note_subagent(agent_id, event, at) {
            self.traces.queue.add(span);
        }
    }
}
