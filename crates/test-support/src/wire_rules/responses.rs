//! OpenAI's responses: <https://platform.openai.com/docs/api-reference/responses/create>, and
//! "Reasoning models" of its guide.

use std::collections::HashSet;

use serde_json::Value;

use super::{check_answers, list};

/// Fails unless the API accepts the items. `sees`: whether the model takes pictures and files.
#[track_caller]
pub fn check_input(body: &Value, sees: bool) {
    let items = list(body, "input");
    assert!(!items.is_empty(), "{body}");
    let of_kind = |kind: &str| {
        let found = items.iter().filter(|item| item["type"] == kind);
        found.map(|item| item["call_id"].as_str().unwrap()).collect::<Vec<_>>()
    };
    check_answers(&of_kind("function_call"), &of_kind("function_call_output"));
    let mut called = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        match item["type"].as_str().unwrap() {
            "function_call" => {
                let id = item["call_id"].as_str().unwrap();
                assert!(id.len() <= 64, "{item}");
                assert!(item["arguments"].is_string() && item["name"].is_string(), "{item}");
                called.insert(id);
            }
            "function_call_output" => {
                assert!(called.contains(item["call_id"].as_str().unwrap()), "{item}");
                for part in list(item, "output") {
                    check_part(part, sees);
                }
            }
            "message" => check_message(item, sees),
            "reasoning" => {
                let next = items.get(index + 1);
                let is_followed = next.is_some_and(|next| next.get("role").is_none_or(|role| role == "assistant"));
                assert!(is_followed, "reasoning that no item follows: {body}");
                assert!(
                    item["encrypted_content"].is_string() || !list(item, "content").is_empty(),
                    "{item}"
                );
            }
            _ => {}
        }
    }
}

#[track_caller]
fn check_message(item: &Value, sees: bool) {
    let content = list(item, "content");
    assert!(!content.is_empty(), "a message without content: {item}");
    for part in content {
        let kind = part["type"].as_str().unwrap();
        match item["role"].as_str().unwrap() {
            "assistant" => assert!(!kind.starts_with("input_"), "{item}"),
            "system" => assert_eq!(kind, "input_text", "{item}"),
            _ => check_part(part, sees),
        }
    }
}

#[track_caller]
fn check_part(part: &Value, sees: bool) {
    let kind = part["type"].as_str().unwrap();
    assert!(["input_text", "input_image", "input_file"].contains(&kind), "{part}");
    assert!(sees || kind == "input_text", "a text model gets {part}");
}
