//! Turns error statuses and error bodies of every form into model errors. Truncates texts and
//! removes control characters.

use std::time::Duration;

use crate::agent::ports::{ModelError, ModelErrorClass};
use crate::json::Value;
use crate::models::retry::AttemptError;

/// The most characters of a message.
const MESSAGE_CHARS: usize = 1_000;
/// The most bytes of an error that are read. A longer error is cut, so it is not parsed as JSON.
/// Parsed, it would take many times its bytes.
pub(super) const ERROR_BYTES: usize = 64 << 10;
/// The most bytes of a body that are retained.
const BODY_BYTES: usize = 4_096;

/// Returns the failure for a response with an error status.
pub(super) fn error_of_response(status: u16, retry_after: Option<Duration>, body: &[u8]) -> AttemptError {
    let text = String::from_utf8_lossy(body);
    let details = Details::parse(&text);
    let fallback = || readable(&text).unwrap_or_else(|| format!("the provider answered with status {status}"));
    details.into_failure(Some(status), retry_after, fallback, &text)
}

/// Returns the failure for an error inside a completion.
pub(super) fn error_of_frame(text: &str) -> AttemptError {
    let text = capped(text, ERROR_BYTES);
    let details = Details::parse(text);
    let fallback = || readable(text).unwrap_or_else(|| "the provider ended its response with an error".to_owned());
    let status = details.status;
    details.into_failure(status, None, fallback, text)
}

/// Truncates a text to `bytes` bytes.
fn capped(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[derive(Debug, Default)]
struct Details {
    message: Option<String>,
    code: Option<String>,
    kind: Option<String>,
    status: Option<u16>,
    /// The pause that the provider requests in the body, if any.
    retry_after: Option<Duration>,
}

impl Details {
    /// Parses an error. An error that is not JSON has no details.
    fn parse(text: &str) -> Self {
        serde_json::from_str(text).map_or_else(|_| Self::default(), |value| Self::of(&value))
    }

    fn of(value: &Value) -> Self {
        let value = match value {
            Value::Array(items) => items.first().unwrap_or(&Value::Null),
            other => other,
        };
        if let Value::String(message) = value {
            return Self {
                message: filled(message),
                ..Self::default()
            };
        }
        match value.get("error") {
            Some(Value::String(message)) => Self {
                message: filled(message),
                ..Self::of_object(value)
            },
            Some(error @ Value::Object(_)) => Self::of_object(error),
            _ => Self::of_object(value),
        }
    }

    fn of_object(error: &Value) -> Self {
        let text = |name: &str| error.get(name).and_then(Value::as_str).and_then(filled);
        let number = |name: &str| {
            let number = error.get(name)?;
            let number = number.as_u64().or_else(|| number.as_str()?.parse().ok())?;
            u16::try_from(number).ok().filter(|status| (400..600).contains(status))
        };
        let message = text("message")
            .or_else(|| text("detail"))
            .or_else(|| text("msg"))
            .or_else(|| {
                let detail = error
                    .get("detail")
                    .or_else(|| error.get("message"))
                    .or_else(|| error.get("errors"))?;
                (!detail.is_null()).then(|| detail.to_string())
            });
        // A gateway that forwards another server's error has only a vague message of its own.
        let passed_on = error.pointer("/metadata/raw").and_then(Value::as_str).and_then(filled);
        Self {
            message: match (message, passed_on) {
                (Some(message), Some(raw)) => Some(format!("{message}: {raw}")),
                (message, raw) => message.or(raw),
            },
            code: text("code"),
            kind: text("type").or_else(|| text("status")),
            status: ["status_code", "code", "status"].into_iter().find_map(number),
            retry_after: retry_delay(error),
        }
    }

    fn into_failure(
        self,
        status: Option<u16>,
        retry_after: Option<Duration>,
        fallback: impl FnOnce() -> String,
        body: &str,
    ) -> AttemptError {
        let words = self.words();
        let class = class_of(&words, status);
        let message = self.message.unwrap_or_else(fallback);
        let no_quota = [
            "insufficient_quota",
            "billing",
            "credit balance",
            "quota_exceeded",
            "exceeded your current quota",
        ];
        // A limit that ends soon is not a missing quota, even if the message mentions a quota.
        let passes = self.retry_after.is_some();
        let failure = AttemptError::judged(ModelError {
            status,
            retry_after: retry_after.or(self.retry_after),
            body: Some(printable(capped(body, BODY_BYTES))).filter(|body| !body.is_empty()),
            ..ModelError::new(
                class,
                printable(&message.chars().take(MESSAGE_CHARS).collect::<String>()),
            )
        });
        AttemptError {
            retryable: failure.retryable && (passes || !no_quota.iter().any(|word| words.contains(word))),
            ..failure
        }
    }

    /// Returns all text that may reveal the class, in lower case.
    fn words(&self) -> String {
        let parts = [&self.code, &self.kind, &self.message];
        parts
            .into_iter()
            .flatten()
            .map(|text| text.to_lowercase() + "\n")
            .collect()
    }
}

/// Reads Google's `RetryInfo`, whose delay is a text such as `"33.5s"`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let mut details = error.get("details")?.as_array()?.iter();
    let delay = details.find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

/// Phrases that determine the class more reliably than the status.
const TELLING: [(ModelErrorClass, &[&str]); 5] = [
    (
        ModelErrorClass::Context,
        &[
            "context_length_exceeded",
            "maximum context length",
            "context length exceeded",
            "exceeds the context",
            "context window",
            "maximum context size",
            "exceed_context_size",
            "prompt is too long",
            "exceed context limit",
            "string_above_max_length",
            "input is too long",
            "reduce the length of the messages",
            "exceeds the maximum number of tokens allowed",
        ],
    ),
    (
        ModelErrorClass::RateLimit,
        &[
            "insufficient_quota",
            "billing_error",
            "credit balance is too low",
            "rate_limit",
            "rate limit",
            "too many requests",
            "resource_exhausted",
        ],
    ),
    (
        ModelErrorClass::Overload,
        &[
            "overloaded",
            "at capacity",
            "over capacity",
            "no capacity",
            "server_busy",
            "engine_overloaded",
        ],
    ),
    (
        ModelErrorClass::Auth,
        &[
            "invalid_api_key",
            "authentication_error",
            "permission_error",
            "unauthenticated",
            "invalid api key",
            "api key not valid",
        ],
    ),
    (ModelErrorClass::Timeout, &["timeout_error"]),
];

/// Phrases of permanent errors, for errors without a status.
const REFUSALS: [&str; 4] = ["invalid_request", "badrequest", "not_found_error", "request_too_large"];

fn class_of(words: &str, status: Option<u16>) -> ModelErrorClass {
    if let Some((class, _)) = TELLING
        .iter()
        .find(|(_, telling)| telling.iter().any(|word| words.contains(word)))
    {
        return *class;
    }
    match status {
        Some(401 | 403) => ModelErrorClass::Auth,
        Some(402 | 429) => ModelErrorClass::RateLimit,
        Some(408 | 504 | 524) => ModelErrorClass::Timeout,
        Some(503 | 529) => ModelErrorClass::Overload,
        Some(409 | 424 | 500..=599) => ModelErrorClass::Server,
        Some(400..=499) => ModelErrorClass::Invalid,
        Some(_) => ModelErrorClass::Protocol,
        None if REFUSALS.iter().any(|word| words.contains(word)) => ModelErrorClass::Invalid,
        None => ModelErrorClass::Server,
    }
}

/// Returns a text if people can read it. Markup and data are not readable.
fn readable(text: &str) -> Option<String> {
    let text = text.trim();
    let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let plain = !json && !text.is_empty() && !text.starts_with(['<', '{', '[']) && !text.contains('\u{FFFD}');
    plain.then(|| text.to_owned())
}

fn filled(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Removes control characters: stores reject NUL, and terminals execute escape sequences.
fn printable(text: &str) -> String {
    let blank = |c: char| {
        if c.is_control() && c != '\n' && c != '\t' {
            ' '
        } else {
            c
        }
    };
    text.chars().map(blank).collect()
}

#[cfg(test)]
mod tests {
    use ModelErrorClass as C;

    use super::*;

    fn error(status: u16, body: &[u8]) -> (ModelErrorClass, String, bool) {
        let failure = error_of_response(status, None, body);
        assert_eq!(failure.error.status, Some(status));
        (failure.error.class, failure.error.message, failure.retryable)
    }

    #[test]
    fn bodies_of_every_shape_give_their_message() {
        for (body, message) in [
            (r#"{"error": {"message": "m", "code": "c", "type": "t"}}"#, "m"),
            (
                r#"{"error": {"message": "m", "code": 400, "metadata": {"raw": "why", "provider_name": "P"}}}"#,
                "m: why",
            ),
            (r#"{"error": "m"}"#, "m"),
            (r#"{"message": "m"}"#, "m"),
            (r#"{"detail": "m"}"#, "m"),
            (
                r#"{"detail": [{"loc": ["body"], "msg": "m"}]}"#,
                r#"[{"loc":["body"],"msg":"m"}]"#,
            ),
            (
                r#"[{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}]"#,
                "m",
            ),
            (
                r#"{"object": "error", "message": "m", "type": "BadRequestError", "code": 400}"#,
                "m",
            ),
            ("\"m\"", "m"),
            ("m", "m"),
            (
                "<html><body>Bad gateway</body></html>",
                "the provider answered with status 400",
            ),
            ("", "the provider answered with status 400"),
            ("{}", "the provider answered with status 400"),
            ("null", "the provider answered with status 400"),
            ("{\"error\": {\"message\": \"a\\u0000b\"}}", "a b"),
        ] {
            assert_eq!(
                error(400, body.as_bytes()),
                (C::Invalid, message.to_owned(), false),
                "{body}"
            );
        }
        assert_eq!(error(500, b"\xFF\xFE").1, "the provider answered with status 500");
    }

    #[test]
    fn the_class_follows_the_words_and_then_the_status() {
        for (status, code, class, retryable) in [
            (400, "context_length_exceeded", C::Context, false),
            (
                400,
                "This model's maximum context length is 10 tokens",
                C::Context,
                false,
            ),
            (429, "insufficient_quota", C::RateLimit, false),
            (429, "rate_limit_exceeded", C::RateLimit, true),
            (413, "rate_limit_exceeded", C::RateLimit, false),
            (500, "overloaded_error", C::Overload, true),
            (400, "invalid_api_key", C::Auth, false),
            (401, "", C::Auth, false),
            (403, "", C::Auth, false),
            (402, "", C::RateLimit, false),
            (404, "model_not_found", C::Invalid, false),
            (408, "", C::Timeout, true),
            (409, "", C::Server, true),
            (422, "", C::Invalid, false),
            (429, "", C::RateLimit, true),
            (500, "", C::Server, true),
            (502, "", C::Server, true),
            (503, "", C::Overload, true),
            (504, "", C::Timeout, true),
            (529, "", C::Overload, true),
            (301, "", C::Protocol, false),
        ] {
            for body in [
                serde_json::json!({"error": {"message": code, "code": null}}),
                serde_json::json!({"error": {"message": "", "code": code}}),
                serde_json::json!({"error": {"type": code}}),
            ] {
                let (got, _, repeated) = error(status, body.to_string().as_bytes());
                assert_eq!((got, repeated), (class, retryable), "{status} {body}");
            }
        }
    }

    #[test]
    fn errors_of_anthropic_have_their_classes_with_and_without_a_status() {
        for (status, kind, message, class, retryable) in [
            (400, "invalid_request_error", "max_tokens: required", C::Invalid, false),
            (
                400,
                "invalid_request_error",
                "prompt is too long: 2 > 1",
                C::Context,
                false,
            ),
            (
                400,
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 2 + 3 > 4",
                C::Context,
                false,
            ),
            (
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the API",
                C::RateLimit,
                false,
            ),
            (401, "authentication_error", "invalid x-api-key", C::Auth, false),
            (402, "billing_error", "pay", C::RateLimit, false),
            (403, "permission_error", "no", C::Auth, false),
            (404, "not_found_error", "model: x", C::Invalid, false),
            (413, "request_too_large", "too large", C::Invalid, false),
            (429, "rate_limit_error", "slow down", C::RateLimit, true),
            (500, "api_error", "Internal server error", C::Server, true),
            (504, "timeout_error", "too slow", C::Timeout, true),
            (529, "overloaded_error", "Overloaded", C::Overload, true),
        ] {
            let body =
                serde_json::json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"});
            assert_eq!(
                error(status, body.to_string().as_bytes()),
                (class, message.to_owned(), retryable),
                "{kind}"
            );
            let failure = error_of_frame(&body.to_string());
            let got = (failure.error.class, failure.error.message.as_str(), failure.retryable);
            assert_eq!(got, (class, message, retryable), "{kind} in the middle of an answer");
        }
    }

    #[test]
    fn huge_bodies_are_cut() {
        let body = serde_json::json!({"error": {"message": "é".repeat(1 << 20)}}).to_string();
        let failure = error_of_response(400, Some(Duration::from_secs(1)), body.as_bytes());
        assert_eq!(failure.error.message.chars().count(), MESSAGE_CHARS);
        assert!(failure.error.body.unwrap().len() <= BODY_BYTES);
        assert_eq!(failure.error.retry_after, Some(Duration::from_secs(1)));
    }

    #[test]
    fn an_error_inside_a_completion_has_its_own_status() {
        let failure = error_of_frame(r#"{"error": {"code": 400, "message": "Token limit reached"}}"#);
        assert_eq!(
            (failure.error.class, failure.error.status, failure.retryable),
            (C::Invalid, Some(400), false)
        );
        let failure = error_of_frame(r#"{"error": {"type": "server_error", "message": "later"}}"#);
        assert_eq!(
            (failure.error.class, failure.error.status, failure.retryable),
            (C::Server, None, true)
        );
        let failure = error_of_frame("upstream broke");
        assert_eq!(failure.error.message, "upstream broke");
    }
}
