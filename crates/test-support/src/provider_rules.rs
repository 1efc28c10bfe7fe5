//! The rules of all providers for a request. Tests check each request that they capture.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent::ports::ModelRequest;
use values::message::{Message, Role};

/// Panics unless every provider would accept the request.
#[track_caller]
pub fn assert_provider_valid(request: &ModelRequest) {
    assert_history_valid(&request.messages.to_vec());
    let names: BTreeSet<_> = request.tools.iter().map(|tool| &tool.name).collect();
    assert_eq!(names.len(), request.tools.len(), "a tool is offered twice");
    assert_ne!(
        request.max_output_tokens,
        Some(0),
        "an answer without tokens is asked for"
    );
}

/// Panics unless each tool call has exactly one result, right after the message that asks for it,
/// and no message is empty.
#[track_caller]
pub fn assert_history_valid(messages: &[Arc<Message>]) {
    let mut open = BTreeSet::new();
    for message in messages {
        let shown = serde_json::to_string(message).unwrap();
        let is_empty = message.content.is_empty() && message.provider_fields.is_none();
        assert!(!is_empty, "an empty message: {shown}");
        for result in message.tool_results() {
            assert_eq!(
                message.role,
                Role::Tool,
                "a result in a message of another role: {shown}"
            );
            let known = open.remove(&result.call_id);
            assert!(known, "a result without an open call: {shown}");
        }
        if message.role != Role::Tool {
            assert!(open.is_empty(), "calls {open:?} have no result before {shown}");
        }
        for call in message.tool_calls() {
            assert_eq!(
                message.role,
                Role::Assistant,
                "a call in a message of another role: {shown}"
            );
            assert!(open.insert(call.id.clone()), "a call's id appears twice: {shown}");
        }
    }
    assert!(open.is_empty(), "calls {open:?} have no result");
}
