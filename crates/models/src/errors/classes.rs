//! The class of an error: its codes first, then its shape, then phrases, and the status last. The
//! table `words.toml` has the codes and the phrases.

use super::details::Details;
use super::words::{WORDS, class_by};
use agent::ports::ModelErrorClass as Class;

/// Stands for the limit of a completion in a sentence. No message has it.
const LIMIT: &str = "\0";

/// Returns the class of an error.
pub(super) fn class_of(details: &Details, status: Option<u16>) -> Class {
    let codes: Vec<_> = details.codes.iter().map(|code| plain(code)).collect();
    let has_code = |part: &str| {
        let is_number = part.bytes().all(|digit| digit.is_ascii_digit());
        codes
            .iter()
            .any(|code| if is_number { code == part } else { code.contains(part) })
    };
    let by_shape = || (may_be_context(status) && is_too_long(details)).then_some(Class::Context);
    let by_completion = || is_bad_completion(details).then_some(Class::Server);
    class_by(&WORDS.codes, has_code)
        .or_else(by_completion)
        .or_else(by_shape)
        .or_else(|| class_by(&WORDS.phrases, |phrase| details.words.contains(phrase)))
        .unwrap_or_else(|| match status {
            Some(401 | 403) => Class::Auth,
            Some(402 | 429) => Class::RateLimit,
            Some(451) => Class::Policy,
            Some(408 | 504 | 524) => Class::Timeout,
            Some(413) => Class::Context,
            Some(503 | 529) => Class::Overload,
            Some(500..=502) if has_any(&details.words, &WORDS.unsupported) => Class::Invalid,
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

/// Returns whether the model called a tool wrongly or broke the response format, and the server
/// refuses this completion of its own. Another attempt may be right.
pub(super) fn is_bad_completion(details: &Details) -> bool {
    let mut codes = details.codes.iter().map(|code| plain(code));
    codes.any(|code| has_any(&code, &WORDS.bad_completion_codes)) || has_any(&details.words, &WORDS.bad_completions)
}

/// Returns whether an error says that the conversation is too long. If it names a field, the fault
/// is there.
fn is_too_long(details: &Details) -> bool {
    let field = details.field.as_deref().unwrap_or_default().to_lowercase();
    let is_name =
        |step: &&str| !step.is_empty() && *step != "body" && !step.bytes().all(|digit| digit.is_ascii_digit());
    let name = field.split(['.', '[', ']', '/']).rfind(is_name).unwrap_or_default();
    let is_limit = has_any(name, &WORDS.completion_limits);
    let is_other = !name.is_empty() && !is_limit && !has_any(name, &WORDS.conversation_fields);
    let mut sentences = sentences(&details.words);
    !is_other && !has_any(&details.words, &WORDS.of_time) && sentences.any(|sentence| says_too_long(sentence, is_limit))
}

fn sentences(words: &str) -> impl Iterator<Item = &str> {
    let lines = words.split(['\n', '。']);
    lines.flat_map(|line| line.trim_end_matches('.').split(". "))
}

/// Returns whether a sentence says that something with a length exceeds something. Its first noun
/// names the part that exceeds.
fn says_too_long(sentence: &str, is_of_limit: bool) -> bool {
    let limits = WORDS.completion_limits.iter();
    let sentence = limits.fold(sentence.to_owned(), |sentence, limit| sentence.replace(limit, LIMIT));
    let first = |names: &[String]| names.iter().filter_map(|name| sentence.find(name.as_str())).min();
    let is_clear = has_any(&sentence, &WORDS.clear_excesses);
    let subject = first(&WORDS.subjects).filter(|_| is_clear || has_any(&sentence, &WORDS.excesses));
    let loose_subject = first(&WORDS.loose_subjects).filter(|_| is_clear);
    let Some(subject) = subject.into_iter().chain(loose_subject).min() else {
        return false;
    };
    let is_of_limit = is_of_limit || sentence.find(LIMIT).is_some_and(|limit| limit < subject);
    let thing = first(&WORDS.things);
    let is_of_input = thing.is_none_or(|thing| subject < thing && has_any(&sentence, &WORDS.lengths));
    is_of_input && (!is_of_limit || has_any(&sentence, &WORDS.conversation_fields))
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
