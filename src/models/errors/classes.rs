//! The class of an error: its codes first, then its shape, then phrases, and the status last. The
//! table `words.toml` has the codes and the phrases.

use super::details::Details;
use super::words::{WORDS, class_by};
use crate::agent::ports::ModelErrorClass as Class;

/// Returns the class of an error.
pub(super) fn class_of(details: &Details, status: Option<u16>) -> Class {
    let codes: Vec<_> = details.codes.iter().map(|code| plain(code)).collect();
    let has_code = |part: &str| {
        let is_number = part.bytes().all(|digit| digit.is_ascii_digit());
        codes
            .iter()
            .any(|code| if is_number { code == part } else { code.contains(part) })
    };
    let by_shape = || (may_be_context(status) && is_too_long(&details.words)).then_some(Class::Context);
    class_by(&WORDS.codes, has_code)
        .or_else(by_shape)
        .or_else(|| class_by(&WORDS.phrases, |phrase| details.words.contains(phrase)))
        .unwrap_or_else(|| match status {
            Some(401 | 403) => Class::Auth,
            Some(402 | 429) => Class::RateLimit,
            Some(408 | 504 | 524) => Class::Timeout,
            Some(413) => Class::Context,
            Some(503 | 529) => Class::Overload,
            Some(409 | 424 | 500..=599) => Class::Server,
            Some(400..=499) => Class::Invalid,
            Some(_) => Class::Protocol,
            None if WORDS.refusals.iter().any(|part| has_code(part)) => Class::Invalid,
            None => Class::Server,
        })
}

/// Returns whether a quota is used up, so that another attempt does not help.
pub(super) fn lacks_quota(details: &Details) -> bool {
    has_any(&details.words, &WORDS.no_quota) || details.codes.iter().any(|code| has_any(&plain(code), &WORDS.no_quota))
}

/// Returns whether a status does not contradict a request that is too long.
fn may_be_context(status: Option<u16>) -> bool {
    status.is_none_or(|status| matches!(status, 400 | 413 | 422 | 424 | 500 | 501 | 502))
}

/// Returns whether words say that the conversation is too long: something with a length exceeds
/// something. Limits of a completion and amounts per time do not count.
fn is_too_long(words: &str) -> bool {
    let others = WORDS.other_subjects.iter();
    let of_input = others.fold(words.to_owned(), |words, name| words.replace(name, ""));
    has_any(&of_input, &WORDS.subjects) && has_any(words, &WORDS.excesses) && !has_any(words, &WORDS.of_time)
}

/// Returns whether a text has one of these parts.
pub(super) fn has_any(text: &str, parts: &[String]) -> bool {
    parts.iter().any(|part| text.contains(part))
}

/// Returns a code in lower case without punctuation, so that all spellings are one.
fn plain(code: &str) -> String {
    let letters = code.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}
