//! Chat completions: <https://platform.openai.com/docs/api-reference/chat/create>; the order of
//! roles of Mistral (<https://docs.mistral.ai/api>) and of strict chat templates.

use std::collections::HashSet;

use serde_json::Value;

use super::{has_words, list};

/// The order of roles that a server demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Any.
    Any,
    /// One system message at the beginning, and no neighbours of one role.
    Joined,
    /// As templates that raise an error unless roles alternate; Mistral.
    Strict,
}

/// Fails unless the server accepts the messages. `id` returns whether it accepts the id of a call,
/// `sees` whether the model takes pictures and files.
#[track_caller]
pub fn check_chat(body: &Value, order: Order, id: fn(&str) -> bool, sees: bool) {
    let messages = list(body, "messages");
    assert!(!messages.is_empty());
    let (mut open, mut used) = (HashSet::new(), HashSet::new());
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            let call = message["tool_call_id"].as_str().unwrap();
            assert!(open.remove(call), "a result without a call: {message}");
            assert!(message["content"].is_string(), "{message}");
            continue;
        }
        assert!(open.is_empty(), "calls without a result before {message}");
        if role == "assistant" {
            for call in list(message, "tool_calls") {
                let call_id = call["id"].as_str().unwrap();
                assert!(id(call_id), "the id of {call}");
                assert!(used.insert(call_id), "two calls have the id {call_id}");
                open.insert(call_id);
                let arguments = call["function"]["arguments"].as_str().unwrap();
                assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object(), "{call}");
            }
            let says = !message["content"].is_null() || !message["refusal"].is_null();
            assert!(says || !open.is_empty(), "an empty message: {message}");
        }
        check_content(message, sees);
        let before = index
            .checked_sub(1)
            .map(|index| messages[index]["role"].as_str().unwrap());
        check_order(order, before, role);
    }
    assert!(open.is_empty(), "calls without a result: {open:?}");
    if order == Order::Strict {
        let last = &messages.last().unwrap()["role"];
        assert!(
            last == "user" || last == "tool",
            "the last message is of the role {last}"
        );
    }
}

#[track_caller]
fn check_order(order: Order, before: Option<&str>, role: &str) {
    if order == Order::Any {
        return;
    }
    assert!(role != "system" || before.is_none(), "system after {before:?}");
    assert_ne!(before, Some(role), "two messages of one role");
    if order == Order::Strict {
        assert!(role != "user" || before != Some("tool"), "user after tool");
        let is_first = matches!(before, None | Some("system"));
        assert!(role != "assistant" || !is_first, "the assistant speaks first");
    }
}

#[track_caller]
fn check_content(message: &Value, sees: bool) {
    let content = &message["content"];
    if let Some(parts) = content.as_array() {
        assert!(!parts.is_empty(), "{message}");
        for part in parts {
            let kind = part["type"].as_str().unwrap_or_default();
            assert!(
                kind != "text" || has_words(&part["text"]) || part["text"] == " ",
                "{message}"
            );
            assert!(
                sees || !["image_url", "file"].contains(&kind),
                "a text model gets {part}"
            );
        }
    }
}
