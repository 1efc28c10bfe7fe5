//! The header `Prefer` (RFC 7240). Unknown preferences are ignored, as the RFC demands.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;

use agent::record::RunMode;

/// Asks for a response before the work is done.
const RESPOND_ASYNC: &str = "respond-async";

/// The preferences of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct Preference {
    is_async: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Preference {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

impl Preference {
    fn of(headers: &HeaderMap) -> Self {
        let given = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let mut preferences = given.flat_map(split_list);
        // Parameters of a preference follow a semicolon.
        let named = |preference: &str| preference.split(';').next().unwrap_or_default().trim().to_owned();
        let is_async = preferences.any(|preference| named(preference).eq_ignore_ascii_case(RESPOND_ASYNC));
        Self { is_async }
    }

    /// Chooses the mode of a run. A stream stays a stream, since it begins at once anyway.
    pub(super) fn mode(self, asked: RunMode) -> RunMode {
        match asked {
            RunMode::Sync if self.is_async => RunMode::Async,
            asked => asked,
        }
    }

    /// Marks a response of a request whose preference was applied.
    pub(super) fn mark(self, response: &mut Response, mode: RunMode) {
        if self.is_async && mode == RunMode::Async {
            let applied = HeaderName::from_static("preference-applied");
            let value = HeaderValue::from_static(RESPOND_ASYNC);
            response.headers_mut().insert(applied, value);
        }
    }
}

/// Splits a list at its commas. Commas between quotes belong to a value.
fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_respond_async_counts() {
        for (given, expected) in [
            (&[][..], false),
            (&["respond-async"][..], true),
            (&["Respond-Async"][..], true),
            (&["handling=lenient, respond-async;wait=10"][..], true),
            (&["return=minimal", " respond-async "][..], true),
            (&["wait=10"][..], false),
            (&["respond-async-later"][..], false),
            (&["note=\"a, respond-async, b\""][..], false),
            (&[",,;"][..], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in given {
                headers.append("prefer", HeaderValue::from_static(value));
            }
            let preference = Preference::of(&headers);
            assert_eq!(preference.is_async, expected, "{given:?}");
            let mode = if expected { RunMode::Async } else { RunMode::Sync };
            assert_eq!(preference.mode(RunMode::Sync), mode);
            assert_eq!(preference.mode(RunMode::Stream), RunMode::Stream);
            assert_eq!(preference.mode(RunMode::Async), RunMode::Async);
        }
    }
}
