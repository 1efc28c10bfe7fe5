//! Samples of this protocol for the tests that all decoders share.

use models::ProviderKind;
use serde_json::{Value, json};

use super::{Samples, decoder};

pub(super) const SAMPLES: Samples = Samples {
    name: "messages",
    make: |content_type, caps| decoder(ProviderKind::Anthropic, content_type, caps),
    nests: &[
        r#"{"type":"message","content":@}"#,
        r#"{"type":"message","content":[{"type":"x","y":@}]}"#,
        r#"{"type":"message","content":[{"type":"tool_use","name":"f","input":@}]}"#,
        r#"{"type":"content_block_start","index":0,"content_block":@}"#,
        r#"{"type":"content_block_delta","delta":@}"#,
        r#"{"type":"content_block_delta","delta":{"type":"x_delta","y":@}}"#,
        r#"{"type":"message_delta","usage":{"iterations":@}}"#,
    ],
    lists: (
        &[
            r#"{"type":"content_block_start","content_block":{"type":"text","citations":@}}"#,
            r#"{"type":"content_block_start","content_block":{"type":"x","a":@}}"#,
            r#"{"type":"message","content":@}"#,
            r#"{"error":@}"#,
        ],
        r#"{"type":"message","content":@}"#,
    ),
    small_frames: &[
        &[r#"{"type":"content_block_start","index":@,"content_block":{"type":"text","text":"x"}}"#],
        &[r#"{"type":"content_block_start","content_block":{"type":"x"}}"#],
        &[r#"{"type":"content_block_start","content_block":{"type":"thinking"}}"#],
        &[r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":"f"}}"#],
        &[r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","citations":[0,0,0,0]}}"#],
        &[r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}"#],
        &[r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"x"}}"#],
        &[
            r#"{"type":"content_block_start","content_block":{"type":"text"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"citations_delta","citation":0}}"#,
        ],
        &[
            r#"{"type":"content_block_start","content_block":{"type":"x"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"x","@":0}}"#,
        ],
        &[
            r#"{"type":"content_block_start","content_block":{"type":"x"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"x","a":[{"":0},{"":0},{"":0}]}}"#,
        ],
    ],
    calls,
    delta,
    delta_allocations: 1,
};

/// A body with calls of tools; one without a name is `null`.
fn calls(names: &[Value]) -> Value {
    let calls = |call: &dyn Fn(&Value) -> Value| names.iter().map(call).collect::<Vec<_>>();
    let content = calls(&|name| json!({"type": "tool_use", "id": "a", "name": name, "input": {}}));
    let usage = json!({"input_tokens": 3, "output_tokens": 2});
    json!({"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage})
}

/// Returns a delta of text as a provider sends it, with many fields that nobody reads.
fn delta() -> Vec<u8> {
    let frame = concat!(
        "event: content_block_delta\n",
        r#"data: {"type":"content_block_delta","index":0,"#,
        r#""delta":{"type":"text_delta","text":"word "}}"#,
    );
    format!("{frame}\n\n").into_bytes()
}
