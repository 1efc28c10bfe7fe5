//! Reads request headers strictly. A malformed header is a problem that names the header.

use axum::http::{HeaderMap, header};

use super::codes::ProblemCode;
use super::problem::Problem;

/// Returns the value of a header. It must occur at most once and have only visible ASCII
/// characters.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Problem> {
    let mut given = headers.get_all(name).iter();
    let Some(value) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(invalid(name, "the header is given twice"));
    }
    let text = value.to_str().ok().filter(|text| is_visible(text));
    text.map(Some)
        .ok_or_else(|| invalid(name, "only visible ASCII characters, and at least one"))
}

/// Returns whether the caller already has what the quoted entity tag names (RFC 9110,
/// `If-None-Match`, weak comparison).
pub(super) fn caller_has(headers: &HeaderMap, tag: &str) -> bool {
    let given = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut tags = given.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag)
}

/// Returns whether a text has visible ASCII characters only, and at least one.
pub(super) fn is_visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Makes the problem of a header that can't be used.
pub(super) fn invalid(name: &str, message: impl Into<String>) -> Problem {
    Problem::of_field(ProblemCode::InvalidHeader, name, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_stands_once_and_is_visible() {
        let name = "idempotency-key";
        for (values, expected) in [
            (&[][..], Ok(None)),
            (&["k-1"][..], Ok(Some("k-1"))),
            (&["~!\""][..], Ok(Some("~!\""))),
            (&[""][..], Err(())),
            (&["a b"][..], Err(())),
            (&["\u{e9}"][..], Err(())),
            (&["a", "a"][..], Err(())),
        ] {
            let values = values.iter().map(|value| {
                (
                    name.parse().unwrap(),
                    axum::http::HeaderValue::from_bytes(value.as_bytes()).unwrap(),
                )
            });
            let headers: HeaderMap = values.collect::<Vec<_>>().into_iter().fold(
                HeaderMap::new(),
                |mut headers, (name, value): (axum::http::HeaderName, _)| {
                    headers.append(name, value);
                    headers
                },
            );
            let read = single(&headers, name).map_err(|problem| assert_eq!(problem.code(), ProblemCode::InvalidHeader));
            assert_eq!(read, expected, "{headers:?}");
        }
    }
}
