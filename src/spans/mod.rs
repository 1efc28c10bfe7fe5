//! Traces for `OpenTelemetry`: spans of requests and of runs.
//!
//! [`RunSpans`] makes the spans of a run from its events, the same that readers get. So a trace,
//! the console and the record of a run can't disagree, and another worker that takes a run over
//! continues its trace. [`Traces`] sends spans to the collector that the standard variables name.
//! Without one there are no spans, and nothing is computed.
//!
//! Spans never have contents: no prompts, no arguments, no results.

mod collector;
mod exporter;
mod genai;
mod mcp_call;
mod run_spans;
mod settings;
mod span;
mod traces;

pub use self::mcp_call::{McpCall, McpCallSpan};
pub use self::run_spans::{Conversation, ProviderSpans, RunSpans};
pub use self::settings::TraceSettings;
pub use self::traces::{RunTrace, ServerSpan, Traces, check};
