//! Samples of this protocol for the tests that all decoders share.

use models::ProviderKind;
use serde_json::{Value, json};

use super::{Samples, decoder};

pub(super) const SAMPLES: Samples = Samples {
    name: "ollama",
    make: |content_type, caps| decoder(ProviderKind::OllamaChat, content_type, caps),
    nests: &[
        r#"{"message":@,"done":true}"#,
        r#"{"message":{"role":"assistant","content":@},"done":true}"#,
        r#"{"message":{"role":"assistant","tool_calls":@},"done":true}"#,
        r#"{"message":{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":@}}]},"done":true}"#,
    ],
    lists: (
        &[
            r#"{"message":{"role":"assistant","content":@}}"#,
            r#"{"message":{"role":"assistant","tool_calls":@}}"#,
            r#"{"error":@}"#,
        ],
        r#"{"message":{"role":"assistant","tool_calls":@},"done":true}"#,
    ),
    small_frames: &[
        &[r#"{"message":{"content":"x"}}"#],
        &[r#"{"message":{"content":"x","thinking":"y"}}"#],
        &[r#"{"message":{"tool_calls":[{"function":{"name":"f"}}]}}"#],
    ],
    calls,
    delta,
    delta_allocations: 1,
};

/// A body with calls of tools; one without a name is `null`.
fn calls(names: &[Value]) -> Value {
    let calls = |call: &dyn Fn(&Value) -> Value| names.iter().map(call).collect::<Vec<_>>();
    let calls = calls(&|name| json!({"function": {"name": name, "arguments": {}}}));
    let message = json!({"role": "assistant", "content": "", "tool_calls": calls});
    json!({"message": message, "done": true, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2})
}

/// Returns a delta of text as a provider sends it, with many fields that nobody reads.
fn delta() -> Vec<u8> {
    let line = concat!(
        r#"{"model":"m","created_at":"2025-11-24T14:56:46.277Z","#,
        r#""message":{"role":"assistant","content":"word "},"done":false}"#,
    );
    format!("{line}\n").into_bytes()
}
