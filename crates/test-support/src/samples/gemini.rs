//! Samples of this protocol for the tests that all decoders share.

use models::ProviderKind;
use serde_json::{Value, json};

use super::{Samples, decoder};

pub(super) const SAMPLES: Samples = Samples {
    name: "gemini",
    make: |content_type, caps| decoder(ProviderKind::Gemini, content_type, caps),
    nests: &[
        r#"{"candidates":@}"#,
        r#"{"usageMetadata":@}"#,
        r#"{"promptFeedback":@}"#,
        r#"{"candidates":[{"content":@}]}"#,
        r#"{"candidates":[{"content":{"parts":@}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":@}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"executableCode":@}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":@}}]},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[{"citationMetadata":{"citations":@}}]}"#,
        r#"{"candidates":[{"groundingMetadata":@}]}"#,
        r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":@}}]}"#,
        r#"{"candidates":[{"urlContextMetadata":{"urlMetadata":@}}]}"#,
    ],
    lists: (
        &[
            r#"{"candidates":[{"content":{"parts":@}}]}"#,
            r#"{"candidates":[{"citationMetadata":{"citations":@}}]}"#,
            r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":@}}]}"#,
            r#"{"error":@}"#,
        ],
        r#"[{"candidates":[]},@]"#,
    ),
    small_frames: &[
        &[r#"{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}"#],
        &[r#"{"candidates":[{"content":{"parts":[{"text":"x","thought":true},{"text":"x"}]}}]}"#],
        &[r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#],
        &[r#"{"candidates":[{"content":{"parts":[{"x":0}]}}]}"#],
        &[r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":["@"]}}]}"#],
    ],
    calls,
    delta,
    delta_allocations: 1 + 5,
};

/// A body with calls of tools; one without a name is `null`.
fn calls(names: &[Value]) -> Value {
    let calls = |call: &dyn Fn(&Value) -> Value| names.iter().map(call).collect::<Vec<_>>();
    let parts = calls(&|name| json!({"functionCall": {"name": name, "args": {}}}));
    let usage = json!({"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5});
    json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage})
}

/// Returns a delta of text as a provider sends it, with many fields that nobody reads.
fn delta() -> Vec<u8> {
    let frame = concat!(
        r#"data: {"candidates":[{"content":{"parts":[{"text":"word "}],"role":"model"},"index":0}],"#,
        r#""usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":5,"totalTokenCount":8,"#,
        r#""promptTokensDetails":[{"modality":"TEXT","tokenCount":3}]},"modelVersion":"m","responseId":"r"}"#,
    );
    format!("{frame}\n\n").into_bytes()
}
