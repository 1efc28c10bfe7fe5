//! HTTP headers that several clients use. No IO.

use std::time::Duration;

use chrono::DateTime;

use crate::clock::Timestamp;

/// Headers that carry credentials. A configuration in clear text may not set them.
pub const CREDENTIAL_HEADERS: [&str; 6] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
];

/// Parses `Retry-After`: a number of seconds, or an HTTP date, which counts from `now`.
pub fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = DateTime::parse_from_rfc2822(text).ok()?;
    Some((date.to_utc() - now).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_nothing_else() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        for (text, expected) in [
            ("2", Some(2_000)),
            (" 1.5 ", Some(1_500)),
            ("0", Some(0)),
            ("Fri, 02 Jan 2026 03:04:15 GMT", Some(10_000)),
            ("Fri, 02 Jan 2026 03:04:00 GMT", Some(0)),
            ("-1", None),
            ("1e300", None),
            ("NaN", None),
            ("soon", None),
            ("", None),
        ] {
            let read = parse_retry_after(text, now);
            assert_eq!(read, expected.map(Duration::from_millis), "{text:?}");
        }
    }
}
