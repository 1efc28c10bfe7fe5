//! A span in the form of the library, and the ids of spans.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
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
    pub(super) links: SpanLinks,
    /// The kind of the failure.
    pub(super) error: Option<String>,
}

impl SpanDraft {
    /// Adds an attribute, if it has a value.
    pub(super) fn set(&mut self, name: &'static str, value: Option<impl Into<opentelemetry::Value>>) {
        self.attributes.extend(value.map(|value| KeyValue::new(name, value)));
    }

    pub(super) fn finish(mut self) -> SpanData {
        self.set(genai::ERROR_TYPE, self.error.clone());
        SpanData {
            span_context: context(self.trace_id, self.span_id, false),
            parent_span_id: self.parent,
            parent_span_is_remote: false,
            span_kind: self.kind,
            name: self.name,
            start_time: system_time(self.start),
            end_time: system_time(self.end.max(self.start)),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: self.links,
            status: self.error.map_or(Status::Unset, Status::error),
            instrumentation_scope: scope(),
        }
    }
}

/// Returns the context of a span that is recorded.
pub(super) fn context(trace_id: TraceId, span_id: SpanId, is_remote: bool) -> SpanContext {
    SpanContext::new(trace_id, span_id, TraceFlags::SAMPLED, is_remote, TraceState::NONE)
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
