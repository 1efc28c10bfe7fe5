//! A span in the form of the library, and the ids of spans.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::genai;
use values::clock::Timestamp;
use values::trace_context::TraceContext;

/// The library that makes the spans, for their readers.
fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("agent-runtime")
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
}

/// A span that is being described.
#[derive(Debug)]
pub(super) struct SpanDraft {
    pub(super) trace_id: TraceId,
    pub(super) span_id: SpanId,
    /// The span around it; invalid for the first span of a trace.
    pub(super) parent: SpanId,
    pub(super) kind: SpanKind,
    pub(super) name: Cow<'static, str>,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) attributes: Vec<KeyValue>,
    pub(super) events: SpanEvents,
    pub(super) links: SpanLinks,
    /// The kind of the failure.
    pub(super) error: Option<String>,
}

impl SpanDraft {
    /// Begins the description of a span within the service.
    pub(super) fn new(trace_id: TraceId, span_id: SpanId, parent: SpanId, start: Timestamp, end: Timestamp) -> Self {
        Self {
            trace_id,
            span_id,
            parent,
            kind: SpanKind::Internal,
            name: "".into(),
            start,
            end,
            attributes: Vec::new(),
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            error: None,
        }
    }

    /// Adds an event with the kind of a failure.
    pub(super) fn add_event(&mut self, name: &'static str, at: Timestamp, error: &str) {
        let attributes = vec![KeyValue::new(genai::ERROR_TYPE, error.to_owned())];
        self.events
            .events
            .push(Event::new(name, system_time(at), attributes, 0));
    }

    /// Adds an attribute, if it has a value.
    pub(super) fn set(&mut self, name: &'static str, value: Option<impl Into<opentelemetry::Value>>) {
        self.attributes.extend(value.map(|value| KeyValue::new(name, value)));
    }

    pub(super) fn finish(mut self) -> SpanData {
        self.set(genai::ERROR_TYPE, self.error.clone());
        SpanData {
            span_context: context(self.trace_id, self.span_id, TraceFlags::SAMPLED, false),
            parent_span_id: self.parent,
            parent_span_is_remote: false,
            span_kind: self.kind,
            name: self.name,
            start_time: system_time(self.start),
            end_time: system_time(self.end.max(self.start)),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events: self.events,
            links: self.links,
            status: self.error.map_or(Status::Unset, Status::error),
            instrumentation_scope: scope(),
        }
    }
}

fn context(trace_id: TraceId, span_id: SpanId, flags: TraceFlags, is_remote: bool) -> SpanContext {
    SpanContext::new(trace_id, span_id, flags, is_remote, TraceState::NONE)
}

/// Returns the context of a span elsewhere.
pub(super) fn remote(other: &TraceContext) -> SpanContext {
    let (trace_id, span_id) = ids(other);
    context(trace_id, span_id, TraceFlags::new(u8::from(other.is_sampled)), true)
}

/// Makes a link to another span.
pub(super) fn linked(other: &TraceContext) -> Link {
    Link::with_context(remote(other))
}

/// Returns the ids of a context.
pub(super) fn ids(context: &TraceContext) -> (TraceId, SpanId) {
    (
        TraceId::from_bytes(context.trace_id.to_bytes()),
        SpanId::from_bytes(context.span_id.to_bytes()),
    )
}

/// Derives the id of a span from what it is about. So every process gives it the same id.
pub(super) fn derived(parts: &[&[u8]]) -> SpanId {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut id = [0; 8];
    hasher.finalize_xof().fill(&mut id);
    // An id of zeros means that there is none.
    id[0] |= 1;
    SpanId::from_bytes(id)
}

fn system_time(time: Timestamp) -> SystemTime {
    let since = time - Timestamp::UNIX_EPOCH;
    SystemTime::UNIX_EPOCH + since.to_std().unwrap_or(Duration::ZERO)
}
