//! Whether spans are sent, and whose traces they continue. Values only.

use serde::Deserialize;

/// How traces of callers are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct TraceSettings {
    /// Whether the trace of a caller is continued. Otherwise each request begins a trace with a
    /// link to it, so that no caller decides what is recorded.
    pub trust_traceparent: bool,
    /// Whether the standard variables name a collector.
    #[serde(skip)]
    pub has_collector: bool,
    /// Whether the standard variables name the service.
    #[serde(skip)]
    pub has_service_name: bool,
}
