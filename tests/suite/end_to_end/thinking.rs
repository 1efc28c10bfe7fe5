//! Thinking over Anthropic Messages: it is stored with the session and goes back to its provider
//! unchanged.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::TestApp;

on_every_store!(signatures_and_hidden_thoughts_go_back_within_a_turn_and_in_the_next);

const SIGNATURE: &str = "EqEECkYICxgCKkAo3UA4+/w==";
const HIDDEN: &str = "EqkECkYIBxgCKkA8AZ4/B==";

async fn signatures_and_hidden_thoughts_go_back_within_a_turn_and_in_the_next(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let has_result = last["content"][0]["type"] == "tool_result";
        match (has_result, last_user_text(request).as_str()) {
            (true, _) => answer(&[thinking("So it is 391."), text("391")], "end_turn"),
            (false, "What is 17 * 23?") => {
                let input = json!({"expression": "17 * 23"});
                let call = json!({"type": "tool_use", "id": "toolu_1", "name": "calculator", "input": input});
                let hidden = json!({"type": "redacted_thinking", "data": HIDDEN});
                answer(&[thinking("I must calculate."), hidden, call], "tool_use")
            }
            _ => answer(&[text("You are welcome.")], "end_turn"),
        }
    });
    let mock = mock.await;
    let base_url = mock.base_url();
    let settings = [
        ("providers.claude.kind", "anthropic"),
        ("providers.claude.base_url", &base_url),
    ];
    let app = TestApp::start(database.url(), &mock, &settings).await;
    let agent = json!({"model": "claude/m", "system_prompt": "You calculate.", "tools": ["calculator"]});
    app.put_agent("calc", agent).await;
    let first = app
        .run_with(json!({"agent": "calc", "input": "What is 17 * 23?"}))
        .await;
    assert_members!(first, {"status": "completed", "output_text": "391", "usage/total_tokens": 230});
    let base = &first["session_id"];
    let second = app
        .run_with(json!({"agent": "calc", "input": "Thanks", "base_session_id": base}))
        .await;
    assert_eq!(second["output_text"], "You are welcome.", "{second:#}");

    let requests = mock.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(
        requests[1]["messages"][1],
        json!({"role": "assistant", "content": [
            thinking("I must calculate."),
            {"type": "redacted_thinking", "data": HIDDEN},
            {"type": "tool_use", "id": "toolu_1", "name": "calculator", "input": {"expression": "17 * 23"}},
        ]})
    );
    assert_eq!(
        requests[1]["messages"][2]["content"],
        json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "391"}])
    );
    // The trace of the first turn is left out; its answer is not.
    assert_eq!(
        requests[2]["messages"],
        json!([
            {"role": "user", "content": [text("What is 17 * 23?")]},
            {"role": "assistant", "content": [thinking("So it is 391."), text("391")]},
            {"role": "user", "content": [text("Thanks")]},
        ])
    );
    assert_eq!(requests[2]["system"][0]["text"], "You calculate.");
    app.finish().await;
}

fn text(words: &str) -> Value {
    json!({"type": "text", "text": words})
}

fn thinking(words: &str) -> Value {
    json!({"type": "thinking", "thinking": words, "signature": SIGNATURE})
}

/// Streams blocks as the API does: thinking and input come in pieces, all else at once.
fn answer(blocks: &[Value], reason: &str) -> Reply {
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 1});
    let mut events = vec![json!({"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": usage}})];
    for (index, block) in blocks.iter().enumerate() {
        let mut start = block.clone();
        let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let deltas = match block["type"].as_str().unwrap() {
            "thinking" => {
                (start["thinking"], start["signature"]) = (json!(""), json!(""));
                let (words, signature) = (block["thinking"].as_str().unwrap(), &block["signature"]);
                let (begin, rest) = words.split_at(4);
                let pieces = [begin, rest].map(|piece| delta(json!({"type": "thinking_delta", "thinking": piece})));
                let signature = delta(json!({"type": "signature_delta", "signature": signature}));
                pieces.into_iter().chain([signature]).collect()
            }
            "tool_use" => {
                start["input"] = json!({});
                let input = block["input"].to_string();
                vec![delta(json!({"type": "input_json_delta", "partial_json": input}))]
            }
            _ => Vec::new(),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.extend(deltas);
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}));
    events.push(json!({"type": "message_stop"}));
    Reply::Events(events)
}
