//! Turns error statuses and error bodies of every form into model errors. Truncates texts and
//! removes control characters.

mod classes;
mod details;
mod refusal;
mod words;

use std::time::Duration;

use self::classes::{class_of, is_bad_completion, lacks_quota};
use self::details::{Details, readable};
pub(super) use self::refusal::refused_part;
use crate::fields::Fields;
use crate::retry::AttemptError;
use crate::settings::ErrorWords;
use agent::ports::{ModelError, ModelErrorClass};

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
    failure(details, Some(status), retry_after, fallback, &text)
}

/// Returns the failure for an error inside a completion.
pub(super) fn error_of_frame(text: &str) -> AttemptError {
    let text = capped(text, ERROR_BYTES);
    let details = Details::parse(text);
    let fallback = || readable(text).unwrap_or_else(|| "the provider ended its response with an error".to_owned());
    let status = details.status;
    failure(details, status, None, fallback, text)
}

/// Returns the failure that an object describes. `is_part`: it is a known part of a completion.
/// Other objects may be events of a later protocol version, which have a type.
pub(super) fn error_in(fields: &Fields<'_>, text: &str, is_part: bool) -> Option<AttemptError> {
    let names_error = |kind: &str| ["error", "Error", "xception"].iter().any(|word| kind.contains(word));
    let is_other = |name: &str| fields.borrowed_text(name).is_some_and(|kind| !names_error(&kind));
    let is_event = || !fields.has("code") && (is_other("type") || is_other("object"));
    let has_words = || Details::parse(capped(text, ERROR_BYTES)).message.is_some();
    (fields.is_error() || (!is_part && !is_event() && has_words())).then(|| error_of_frame(text))
}

/// Truncates a text to `bytes` bytes.
fn capped(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn failure(
    details: Details,
    status: Option<u16>,
    retry_after: Option<Duration>,
    fallback: impl FnOnce() -> String,
    body: &str,
) -> AttemptError {
    let class = class_of(&details, status);
    // A limit that ends soon is not a missing quota, even if the message mentions a quota.
    let may_pass = details.retry_after.is_some() || !lacks_quota(&details);
    let is_bad_completion = class == ModelErrorClass::Server && is_bad_completion(&details);
    let message = details.message.unwrap_or_else(fallback);
    let failure = AttemptError::judged(ModelError {
        status,
        retry_after: retry_after.or(details.retry_after),
        body: Some(printable(capped(body, BODY_BYTES))).filter(|body| !body.is_empty()),
        ..ModelError::new(
            class,
            printable(&message.chars().take(MESSAGE_CHARS).collect::<String>()),
        )
    });
    AttemptError {
        retryable: (failure.retryable || is_bad_completion) && may_pass,
        ..failure
    }
}

/// Applies the configured words of a provider.
pub(super) fn reclassified(failure: AttemptError, words: &ErrorWords) -> AttemptError {
    let error = &failure.error;
    let text = format!("{}\n{}", error.message, error.body.as_deref().unwrap_or_default()).to_lowercase();
    let class = words.all().find(|(_, word)| text.contains(&word.to_lowercase()));
    let Some((class, _)) = class else {
        return failure;
    };
    AttemptError {
        retryable: matches!(class, ModelErrorClass::RateLimit | ModelErrorClass::Overload),
        error: ModelError { class, ..failure.error },
    }
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
mod tests;
