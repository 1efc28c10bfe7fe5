//! The types of responses that a client accepts, by RFC 9110.

use axum::http::{HeaderMap, header};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The types that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepted {
    /// Reads the header. Without one, a client accepts everything.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        let ranges: Vec<_> = values.flat_map(|value| value.split(',')).filter_map(range).collect();
        let accepts = |wanted: &str| {
            let best = ranges
                .iter()
                .filter_map(|(name, quality)| Some((rank(name, wanted)?, quality)));
            let best = best.max_by_key(|(rank, _)| *rank);
            ranges.is_empty() || best.is_some_and(|(_, quality)| *quality > 0.0)
        };
        Self {
            json: accepts(JSON),
            events: accepts(EVENTS),
        }
    }
}

/// Reads a range such as `text/*;q=0.5`. A quality that can't be read is 1.
fn range(text: &str) -> Option<(String, f32)> {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next()?.to_ascii_lowercase();
    let quality = parts.find_map(|part| part.strip_prefix(['q', 'Q'])?.trim_start().strip_prefix('='));
    let quality = quality.and_then(|quality| quality.trim().parse().ok()).unwrap_or(1.0);
    name.contains('/').then_some((name, quality))
}

/// Returns how exactly a range names a type, if it does.
fn rank(range: &str, wanted: &str) -> Option<usize> {
    let (kind, _) = wanted.split_once('/')?;
    ["*/*", &format!("{kind}/*"), wanted]
        .iter()
        .position(|name| *name == range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_exact_range_decides() {
        for (values, json, events) in [
            (&[][..], true, true),
            (&[""], true, true),
            (&["*/*"], true, true),
            (&["application/*, text/*"], true, true),
            (&["application/json"], true, false),
            (&["Application/JSON; charset=utf-8", "text/event-stream"], true, true),
            (&["text/event-stream"], false, true),
            (&["application/json;q=0.9, text/event-stream; q=0.8"], true, true),
            (&["*/*;q=0.1, application/json;q=0"], false, true),
            (&["text/*;q=0, text/event-stream"], false, true),
            (&["text/html"], false, false),
            (&["*/*; q=0"], false, false),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::ACCEPT, value.parse().unwrap());
            }
            assert_eq!(Accepted::of(&headers), Accepted { json, events }, "{values:?}");
        }
    }
}
