//! Samples of this protocol for the tests that all decoders share.

use models::ProviderKind;
use serde_json::{Value, json};

use super::{Samples, decoder};
use crate::small_frames::of_aws;

pub(super) const SAMPLES: Samples = Samples {
    name: "converse",
    make: |content_type, caps| decoder(ProviderKind::Bedrock, content_type, caps),
    nests: &[
        r#"{"output":@}"#,
        r#"{"output":{"message":{"role":"assistant","content":@}}}"#,
        r#"{"output":{"message":{"role":"assistant","content":[{"text":@}]}},"stopReason":"end_turn"}"#,
        r#"{"output":{"message":{"role":"assistant","content":[{"toolUse":{"name":"f","input":@}}]}},"stopReason":"tool_use"}"#,
        r#"{"output":{"message":{"role":"assistant","content":[{"reasoningContent":@}]}}}"#,
    ],
    lists: (
        &[],
        r#"{"output":{"message":{"content":[{"citationsContent":{"citations":@}}]}}}"#,
    ),
    small_frames: &[],
    calls,
    delta,
    delta_allocations: 1 + 11,
};

/// A body with calls of tools; one without a name is `null`.
fn calls(names: &[Value]) -> Value {
    let calls = |call: &dyn Fn(&Value) -> Value| names.iter().map(call).collect::<Vec<_>>();
    let content = calls(&|name| json!({"toolUse": {"toolUseId": "a", "name": name, "input": {}}}));
    let usage = json!({"inputTokens": 3, "outputTokens": 2, "totalTokens": 5});
    json!({"output": {"message": {"content": content}}, "stopReason": "tool_use", "usage": usage})
}

/// Returns a delta of text as a provider sends it, with many fields that nobody reads.
fn delta() -> Vec<u8> {
    let payload = r#"{"contentBlockIndex":0,"delta":{"text":"word "},"p":"abcdefghij"}"#;
    of_aws("contentBlockDelta", payload)
}
