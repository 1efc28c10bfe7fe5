//! Gemini's `generateContent`: <https://ai.google.dev/api/caching#Content>, and "Function calling"
//! and "Thought signatures" of its guide.

use serde_json::Value;

use super::{check_turns, has_words, list};

/// Fails unless the API accepts the contents. `is_signed`: whether the model demands signatures.
#[track_caller]
pub fn check_contents(body: &Value, is_signed: bool) {
    let turns = list(body, "contents");
    check_turns(turns, "model");
    assert_eq!(turns.last().unwrap()["role"], "user", "{body}");
    let mut open = Vec::new();
    for turn in turns {
        let parts = list(turn, "parts");
        assert!(!parts.is_empty(), "a turn without parts: {body}");
        let of_kind = |kind: &str| {
            let found = parts.iter().filter_map(|part| part.get(kind));
            found
                .map(|part| (part["id"].clone(), part["name"].clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(of_kind("functionResponse"), open, "each call has one response: {turn}");
        open = of_kind("functionCall");
        let mut calls = parts.iter().filter(|part| part.get("functionCall").is_some());
        if is_signed && let Some(first) = calls.next() {
            assert!(
                has_words(&first["thoughtSignature"]),
                "a call without a signature: {first}"
            );
        }
        parts.iter().for_each(check_part);
        let last = parts.last().unwrap();
        assert!(last["thought"] != true, "a thought that nothing follows: {turn}");
    }
    assert!(open.is_empty(), "calls without a response");
}

#[track_caller]
fn check_part(part: &Value) {
    const KINDS: [&str; 9] = [
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
    ];
    let kinds = KINDS.iter().filter(|kind| part.get(kind).is_some()).count();
    assert_eq!(kinds, 1, "a part has one kind of data: {part}");
    let is_empty = part.get("text").is_some_and(|text| text == "");
    assert!(
        !is_empty || part.get("thoughtSignature").is_some(),
        "an empty text: {part}"
    );
    if let Some(call) = part.get("functionCall") {
        assert!(call["args"].is_object() && has_words(&call["name"]), "{call}");
    }
}
