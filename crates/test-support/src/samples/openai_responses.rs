//! Samples of this protocol for the tests that all decoders share.

use models::ProviderKind;
use serde_json::{Value, json};

use super::{Samples, decoder};

pub(super) const SAMPLES: Samples = Samples {
    name: "responses",
    make: |content_type, caps| decoder(ProviderKind::OpenAiResponses, content_type, caps),
    nests: &[
        r#"{"object":"response","output":@}"#,
        r#"{"type":"response.completed","response":{"output":@}}"#,
        r#"{"type":"response.output_item.done","item":@}"#,
        r#"{"type":"response.output_item.done","item":{"type":"message","content":@}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"reasoning","summary":@}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":@}}"#,
        r#"{"type":"response.output_text.delta","delta":@}"#,
        r#"{"type":"response.content_part.done","part":{"type":"output_text","annotations":@}}"#,
    ],
    lists: (
        &[
            r#"{"type":"response.output_item.done","item":{"type":"message","content":@}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"reasoning","summary":@}}"#,
            r#"{"type":"response.completed","response":{"output":@}}"#,
            r#"{"type":"response.failed","response":{"status":"failed","error":@}}"#,
        ],
        r#"{"object":"response","output":@}"#,
    ),
    small_frames: &[
        &[r#"{"type":"response.output_text.delta","item_id":"@","delta":"x"}"#],
        &[r#"{"type":"response.output_text.delta","item_id":"a","content_index":@,"delta":"x"}"#],
        &[r#"{"type":"response.output_text.delta","item_id":"a","delta":"x"}"#],
        &[r#"{"type":"response.reasoning_summary_text.delta","item_id":"a","summary_index":@,"delta":"x"}"#],
        &[r#"{"type":"response.output_item.added","item":{"type":"message","id":"@"}}"#],
        &[r#"{"type":"response.output_item.added","item":{"type":"x","id":"@"}}"#],
        &[r#"{"type":"response.output_item.done","item":{"type":"x","id":"@"}}"#],
        &[r#"{"type":"response.output_item.done","item":{"type":"x"}}"#],
        &[r#"{"type":"response.output_item.done","item":{"type":"function_call","name":"f"}}"#],
        &[r#"{"type":"response.output_item.done","output_index":@,"item":{"type":"message"}}"#],
        &[r#"{"type":"response.output_item.done","item":{"type":"message","content":[0,0,0,0,0,0,0,0]}}"#],
        &[
            r#"{"type":"response.output_item.added","item":{"type":"message","id":"a"}}"#,
            r#"{"type":"response.output_text.annotation.added","item_id":"a","content_index":@,"annotation":0}"#,
        ],
        &[
            r#"{"type":"response.output_item.added","item":{"type":"message","id":"a"}}"#,
            r#"{"type":"response.content_part.done","item_id":"a","content_index":@,"part":{"type":"output_text"}}"#,
        ],
    ],
    calls,
    delta,
    delta_allocations: 1,
};

/// A body with calls of tools; one without a name is `null`.
fn calls(names: &[Value]) -> Value {
    let calls = |call: &dyn Fn(&Value) -> Value| names.iter().map(call).collect::<Vec<_>>();
    let output = calls(&|name| json!({"type": "function_call", "call_id": "a", "name": name, "arguments": "{}"}));
    let usage = json!({"input_tokens": 3, "output_tokens": 2, "total_tokens": 5});
    json!({"object": "response", "status": "completed", "output": output, "usage": usage})
}

/// Returns a delta of text as a provider sends it, with many fields that nobody reads.
fn delta() -> Vec<u8> {
    let frame = concat!(
        "event: response.output_text.delta\n",
        r#"data: {"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_1","#,
        r#""output_index":0,"content_index":0,"delta":"word ","logprobs":[],"obfuscation":"x"}"#,
    );
    format!("{frame}\n\n").into_bytes()
}
