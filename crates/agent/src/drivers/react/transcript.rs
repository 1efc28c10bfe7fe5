//! Renders a neutral history as a conversation without tools: calls become decisions, and results
//! become observations.
//!
//! The history itself does not change, so another driver or model can continue it.

use std::sync::Arc;

use super::decision::{written_action, written_answer};
use crate::state::Messages;
use values::json::{Value, parse_strict};
use values::message::{ContentPart, Message, Role, ToolCall, ToolResult, joined_text};

/// The beginning of the advice after a decision that can't be parsed.
pub(super) const UNREADABLE: &str = "Your last message can't be read: ";

/// Renders the messages for a model without tools. Equal messages give equal bytes.
///
/// A malformed decision stays as the model wrote it, since the advice to correct it follows. A
/// completion with JSON is shown as JSON if `is_json`, and otherwise as text.
pub(super) fn rendered(messages: &[Arc<Message>], is_json: bool) -> Messages {
    let mut shown = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        let is_raw = after.first().is_some_and(|next| is_advice(next));
        if message.role != Role::Assistant || is_raw {
            shown.push(Arc::clone(message));
        } else if message.tool_calls().next().is_none() {
            shown.push(answer(message, is_json));
        } else {
            let results = after.iter().take_while(|next| next.role == Role::Tool).count();
            let (results, after) = after.split_at(results);
            rest = after;
            push_actions(message, results, &mut shown);
        }
    }
    shown.into()
}

fn is_advice(message: &Message) -> bool {
    message.role == Role::User && message.tags.is_trace && message.joined_text().starts_with(UNREADABLE)
}

/// Renders a completion as the decision to finish. A completion without text is not a decision.
fn answer(message: &Arc<Message>, is_json: bool) -> Arc<Message> {
    let words = joined_text(&message.content);
    if words.is_empty() {
        return Arc::clone(message);
    }
    let value = is_json.then(|| parse_strict(&words).ok()).flatten();
    let value = value.filter(Value::is_object).unwrap_or_else(|| Value::from(words));
    let retained = without_words(message);
    rewritten(
        message,
        Role::Assistant,
        retained.chain([ContentPart::text(written_answer(value))]),
    )
}

/// Adds each call as a separate decision, followed by its result.
fn push_actions(message: &Arc<Message>, results: &[Arc<Message>], shown: &mut Vec<Arc<Message>>) {
    let mut thought = joined_text(&message.content);
    let mut retained: Vec<ContentPart> = without_words(message).collect();
    for call in message.tool_calls() {
        let decision = written_action(&thought, &call.name, &call.arguments);
        thought.clear();
        let content = retained
            .drain(..)
            .chain([ContentPart::text(decision)])
            .collect::<Vec<_>>();
        shown.push(rewritten(message, Role::Assistant, content));
        let result = results
            .iter()
            .find_map(|answer| result_of(answer, call).map(|result| (answer, result)));
        if let Some((answer, result)) = result {
            shown.push(rewritten(answer, Role::User, observation(result)));
        }
    }
}

fn result_of<'a>(answer: &'a Message, call: &ToolCall) -> Option<&'a ToolResult> {
    answer.tool_results().find(|result| result.call_id == call.id)
}

fn observation(result: &ToolResult) -> Vec<ContentPart> {
    let mark = if result.is_error {
        "Observation (error)"
    } else {
        "Observation"
    };
    let words = ContentPart::text(format!("{mark}: {}", joined_text(&result.content)));
    let others = result.content.iter().filter(|part| part.as_text().is_none());
    [words].into_iter().chain(others.cloned()).collect()
}

fn without_words(message: &Message) -> impl Iterator<Item = ContentPart> {
    let retained = message
        .content
        .iter()
        .filter(|part| !matches!(part, ContentPart::Text(_) | ContentPart::ToolCall(_)));
    retained.cloned()
}

/// Makes a message with other content. Drops the fields that a provider requires back unchanged,
/// since they belong to the original content.
fn rewritten(message: &Message, role: Role, content: impl IntoIterator<Item = ContentPart>) -> Arc<Message> {
    Arc::new(Message {
        role,
        content: content.into_iter().collect(),
        provider_fields: None,
        ..message.clone()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(json: &Value) -> Vec<Arc<Message>> {
        let with_rest = json.as_array().unwrap().iter().map(|message| {
            let mut message = message.clone();
            message["id"] = json!("0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11");
            message["created_at"] = json!("2026-01-01T00:00:00Z");
            Arc::new(serde_json::from_value(message).unwrap())
        });
        with_rest.collect()
    }

    fn shown(messages: &[Arc<Message>]) -> Vec<(Role, String)> {
        let line = |message: &Arc<Message>| (message.role, message.joined_text());
        messages.iter().map(line).collect()
    }

    #[test]
    fn calls_become_decisions_and_results_observations() {
        let advice = format!("{UNREADABLE}it is no JSON.");
        let picture = json!({"type": "image", "source": {"kind": "url", "url": "https://example.org/a.png"}});
        let history = messages(&json!([
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Both."},
                {"type": "tool_call", "id": "a", "name": "x", "arguments": "{\"n\": 1}"},
                {"type": "tool_call", "id": "b", "name": "y", "arguments": "{"},
            ]},
            {"role": "tool", "content": [
                {"type": "tool_result", "call_id": "a", "name": "x", "content": [{"type": "text", "text": "one"}, picture]},
                {"type": "tool_result", "call_id": "b", "name": "y", "content": [{"type": "text", "text": "no"}], "is_error": true},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "not JSON"}]},
            {"role": "user", "content": [{"type": "text", "text": advice}], "tags": {"is_trace": true}},
            {"role": "assistant", "content": [{"type": "text", "text": "{\"b\": 1}"}]},
        ]));
        let expected = |answer: &str| {
            [
                (Role::User, "Hi"),
                (
                    Role::Assistant,
                    r#"{"thought":"Both.","action":{"tool":"x","arguments":{"n":1}}}"#,
                ),
                (Role::User, "Observation: one"),
                (Role::Assistant, r#"{"action":{"tool":"y","arguments":"{"}}"#),
                (Role::User, "Observation (error): no"),
                (Role::Assistant, "not JSON"),
                (Role::User, &advice),
                (Role::Assistant, answer),
            ]
            .map(|(role, text)| (role, text.to_owned()))
        };
        let words = rendered(&history, false);
        assert_eq!(shown(&words.to_vec()), expected(r#"{"answer":"{\"b\": 1}"}"#));
        assert_eq!(words[2].content.len(), 2, "the picture is retained");
        let values = rendered(&history, true);
        assert_eq!(shown(&values.to_vec()), expected(r#"{"answer":{"b":1}}"#));
        assert!(values.iter().all(|message| message.tool_calls().next().is_none()));
    }
}
