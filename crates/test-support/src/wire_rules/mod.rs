//! The published rules of providers for the histories in requests, one file for each provider. Know
//! nothing of the code under test.

mod anthropic;
mod bedrock;
mod chat;
mod gemini;
mod responses;

use serde_json::Value;

pub use self::anthropic::check_messages;
pub use self::bedrock::check_converse;
pub use self::chat::{Order, check_chat};
pub use self::gemini::check_contents;
pub use self::responses::check_input;

/// Returns the items of a list.
fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// Returns whether a value is a text with more than blanks.
fn has_words(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

/// Returns whether an id has at most so many letters, digits, `_` and `-`.
fn is_plain(id: &str, most: usize) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !id.is_empty() && id.len() <= most && id.chars().all(plain)
}

/// Fails unless the two sides take turns, and the caller has the first one.
#[track_caller]
fn check_turns(turns: &[Value], model: &str) {
    for (index, turn) in turns.iter().enumerate() {
        let role = if index % 2 == 0 { "user" } else { model };
        assert_eq!(turn["role"], role, "the role of turn {index} of {turns:?}");
    }
}

/// Fails unless the ids of results are those of the calls of the turn before.
#[track_caller]
fn check_answers(calls: &[&str], results: &[&str]) {
    let (mut calls, mut results) = (calls.to_vec(), results.to_vec());
    calls.sort_unstable();
    results.sort_unstable();
    assert_eq!(results, calls, "each call has one result");
    calls.dedup();
    assert_eq!(results.len(), calls.len(), "ids are unique: {results:?}");
}
