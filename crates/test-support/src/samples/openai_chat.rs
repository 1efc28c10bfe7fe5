//! Samples of this protocol for the tests that all decoders share.

use models::ProviderKind;
use serde_json::{Value, json};

use super::{Samples, decoder};

pub(super) const SAMPLES: Samples = Samples {
    name: "chat",
    make: |content_type, caps| decoder(ProviderKind::OpenAiChat, content_type, caps),
    nests: &[
        r#"{"choices":@}"#,
        r#"{"choices":[{"index":0,"delta":@,"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":@}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":@}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"f","arguments":@}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning_details":@}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"t","x":@}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":@}]}}]}"#,
        r#"{"choices":[{"index":0,"message":{"executed_tools":@}}]}"#,
    ],
    lists: (
        &[
            r#"{"choices":[{"delta":{"content":@}}]}"#,
            r#"{"choices":[{"delta":{"annotations":@}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","a":@}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_details":[{"type":"t","a":@}]}}]}"#,
            r#"{"error":@}"#,
        ],
        r#"{"choices":[{"message":{"content":@}}]}"#,
    ),
    small_frames: &[
        &[r#"{"choices":[{"delta":{"content":"x"}}]}"#],
        &[r#"{"choices":[{"delta":{"content":"x","reasoning":"y"}}]}"#],
        &[r#"{"choices":[{"delta":{"content":[{}]}}]}"#],
        &[r#"{"choices":[{"delta":{"refusal":"x","images":[{"image_url":{"url":"data:image/png;base64,"}}]}}]}"#],
        &[r#"{"choices":[{"delta":{"content":[{"type":"thinking","@":0}]}}]}"#],
        &[r#"{"choices":[{"delta":{"content":[{"type":"thinking","a":[{"":0},{"":0},{"":0}]}]}}]}"#],
        &[r#"{"choices":[{"delta":{"content":[{"type":"thinking"},{"type":"@"}]}}]}"#],
        &[r#"{"choices":[{"delta":{"reasoning_details":[{"type":"t","@":0}]}}]}"#],
        &[r#"{"choices":[{"delta":{"reasoning_details":[{"type":"t","a":[{"":0},{"":0},{"":0}]}]}}]}"#],
        &[r#"{"choices":[{"delta":{"reasoning_details":[{"type":"@"}]}}]}"#],
        &[r#"{"choices":[{"delta":{"@":0}}]}"#],
        &[r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"x"}}]}}]}"#],
        &[r#"{"choices":[{"delta":{"tool_calls":[{"index":@,"function":{"name":"f"}}]}}]}"#],
        &[r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"@":0}]}}]}"#],
        &[r#"{"choices":[{"delta":{"annotations":[0,0,0,0]}}]}"#],
        &[r#"{"choices":[{"delta":{"annotations":["@"]}}]}"#],
    ],
    calls,
    delta,
    delta_allocations: 1 + 2,
};

/// A body with calls of tools; one without a name is `null`.
fn calls(names: &[Value]) -> Value {
    let calls = |call: &dyn Fn(&Value) -> Value| names.iter().map(call).collect::<Vec<_>>();
    let calls = calls(&|name| json!({"id": "a", "function": {"name": name, "arguments": "{}"}}));
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    json!({"choices": [{"index": 0, "message": {"content": "x", "tool_calls": calls}}], "usage": usage})
}

/// Returns a delta of text as a provider sends it, with many fields that nobody reads.
fn delta() -> Vec<u8> {
    let frame = concat!(
        r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","#,
        r#""system_fingerprint":"fp","service_tier":"default","choices":[{"index":0,"delta":"#,
        r#"{"content":"word "},"logprobs":null,"finish_reason":null}],"usage":null}"#,
    );
    format!("{frame}\n\n").into_bytes()
}
