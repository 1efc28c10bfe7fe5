//! The position of a request in a distributed trace, as its caller names it.
//!
//! Source: W3C Trace Context, <https://www.w3.org/TR/trace-context/>.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The length of a header of version 00.
const LENGTH: usize = 55;
/// The flag of a trace that its caller records.
const SAMPLED: u8 = 1;

/// Names a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(NonZeroU128);

/// Names a span of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(NonZeroU64);

/// The trace of a caller, and the caller's span in it: the value of the header `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TraceContext {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    /// Whether the caller records the trace.
    pub is_sampled: bool,
}

/// A text that is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a trace context reads 00-TRACE-SPAN-FLAGS, in lower-case hexadecimal digits")]
pub struct ParseTraceContextError;

impl TraceId {
    /// Returns the bytes, the highest first.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.get().to_be_bytes()
    }
}

impl SpanId {
    /// Returns the bytes, the highest first.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.get().to_be_bytes()
    }
}

impl TraceContext {
    /// Makes the position of a span that is recorded. `None` if an id has only zeros, which means
    /// that there is none.
    pub fn recorded(trace_id: [u8; 16], span_id: [u8; 8]) -> Option<Self> {
        Some(Self {
            trace_id: TraceId(NonZeroU128::new(u128::from_be_bytes(trace_id))?),
            span_id: SpanId(NonZeroU64::new(u64::from_be_bytes(span_id))?),
            is_sampled: true,
        })
    }

    /// Makes the first span of a new trace from a random number. The span has the lower half.
    pub fn root(random: u128, is_sampled: bool) -> Self {
        let lower = u64::try_from(random & u128::from(u64::MAX)).unwrap_or(u64::MAX);
        Self {
            // An id of zeros means that there is none.
            trace_id: TraceId(NonZeroU128::new(random).unwrap_or(NonZeroU128::MIN)),
            span_id: SpanId(NonZeroU64::new(lower).unwrap_or(NonZeroU64::MIN)),
            is_sampled,
        }
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = if self.is_sampled { SAMPLED } else { 0 };
        write!(formatter, "00-{}-{}-{flags:02x}", self.trace_id, self.span_id)
    }
}

impl From<TraceContext> for String {
    fn from(context: TraceContext) -> Self {
        context.to_string()
    }
}

impl TryFrom<String> for TraceContext {
    type Error = ParseTraceContextError;

    fn try_from(text: String) -> Result<Self, ParseTraceContextError> {
        text.parse()
    }
}

impl FromStr for TraceContext {
    type Err = ParseTraceContextError;

    /// Reads any version. A later one may have further fields, which are ignored.
    fn from_str(text: &str) -> Result<Self, ParseTraceContextError> {
        parse(text).ok_or(ParseTraceContextError)
    }
}

fn parse(text: &str) -> Option<TraceContext> {
    let (known, rest) = text.split_at_checked(LENGTH)?;
    let mut fields = known.split('-');
    let version = hex(fields.next()?, 2)?;
    let trace_id = hex(fields.next()?, 32)?;
    let span_id = hex(fields.next()?, 16)?;
    let flags = hex(fields.next()?, 2)?;
    let is_whole = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    if fields.next().is_some() || !is_whole {
        return None;
    }
    Some(TraceContext {
        trace_id: TraceId(NonZeroU128::new(trace_id)?),
        span_id: SpanId(NonZeroU64::new(u64::try_from(span_id).ok()?)?),
        is_sampled: flags & u128::from(SAMPLED) != 0,
    })
}

fn hex(text: &str, length: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_valid = text.len() == length && text.bytes().all(is_digit);
    is_valid.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_context_is_read_and_written() {
        let context: TraceContext = GIVEN.parse().unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), GIVEN);
        let unsampled = GIVEN.replace("-01", "-00");
        assert_eq!(unsampled.parse::<TraceContext>().unwrap().to_string(), unsampled);
        let (trace_id, span_id) = (context.trace_id.to_bytes(), context.span_id.to_bytes());
        assert_eq!(TraceContext::recorded(trace_id, span_id), Some(context));
        assert_eq!(TraceContext::recorded([0; 16], span_id), None);
        assert_eq!(TraceContext::recorded(trace_id, [0; 8]), None);
        let later = format!("cc{}-what-is-new", &GIVEN[2..]);
        assert_eq!(later.parse(), Ok(context));
    }

    #[test]
    fn what_is_no_context_is_refused() {
        let with = |from: &str, to: &str| GIVEN.replace(from, to);
        for text in [
            String::new(),
            "00".to_owned(),
            with("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            with("b7ad6b7169203331", &"0".repeat(16)),
            with("0af", "0AF"),
            with("0af", "+af"),
            with("00-", "ff-"),
            format!("{GIVEN}-more"),
            format!("cc{}more", &GIVEN[2..]),
            GIVEN.replace('-', "_"),
            format!("é{}", &GIVEN[2..]),
        ] {
            assert_eq!(text.parse::<TraceContext>(), Err(ParseTraceContextError), "{text}");
        }
    }
}
