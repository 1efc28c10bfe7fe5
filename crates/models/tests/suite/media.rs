//! Pictures and files of each source, in the form of each protocol.

use models::ProviderKind;
use serde_json::{Value, json};
use test_support::wires::{encode_request, settings};
use values::message::{ContentPart, Role};

use super::support::{message, request};

/// Returns the parts of the caller's message with this part.
fn sent(kind: ProviderKind, part: &Value) -> Vec<Value> {
    let part: ContentPart = serde_json::from_value(part.clone()).unwrap();
    let request = request(vec![message(Role::User, vec![part])]);
    let body: Value = serde_json::from_slice(&encode_request(&request, &settings("p", kind), true)).unwrap();
    let parts = match kind {
        ProviderKind::Gemini => &body["contents"][0]["parts"],
        _ => &body["messages"][0]["content"],
    };
    parts.as_array().unwrap().clone()
}

fn base64(kind: &str, media_type: &str, data: &str) -> Value {
    json!({"type": kind, "source": {"kind": "base64", "media_type": media_type, "data": data}})
}

fn url(kind: &str, url: &str) -> Value {
    json!({"type": kind, "source": {"kind": "url", "url": url}})
}

#[test]
fn every_source_has_its_form_for_anthropic() {
    let stored = json!({"kind": "provider_file", "provider": "p", "file_id": "file_1"});
    for (part, source) in [
        (
            url("image", "https://h/a.png"),
            json!({"type": "url", "url": "https://h/a.png"}),
        ),
        (
            url("image", "data:image/png;base64,AAAA"),
            json!({"type": "base64", "media_type": "image/png", "data": "AAAA"}),
        ),
        (
            base64("image", "image/png", "AAAA"),
            json!({"type": "base64", "media_type": "image/png", "data": "AAAA"}),
        ),
        (
            url("document", "https://h/a.pdf"),
            json!({"type": "url", "url": "https://h/a.pdf"}),
        ),
        (
            base64("document", "application/pdf", "JVBERg=="),
            json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}),
        ),
        (
            base64("document", "text/markdown; charset=utf-8", "IyBHcsO8w59l"),
            json!({"type": "text", "media_type": "text/plain", "data": "# Grüße"}),
        ),
        (
            json!({"type": "image", "source": stored}),
            json!({"type": "file", "file_id": "file_1"}),
        ),
    ] {
        let parts = sent(ProviderKind::Anthropic, &part);
        let is_expected = |sent: &Value| sent["type"] == part["type"] && sent["source"] == source;
        assert!(parts.iter().any(is_expected), "{parts:?}");
    }
    for (name, title) in [(json!("a.pdf"), Some("a.pdf")), (json!(" "), None), (Value::Null, None)] {
        let mut part = url("document", "https://h/a.pdf");
        part["name"] = name;
        let parts = sent(ProviderKind::Anthropic, &part);
        assert_eq!(parts[0].get("title").and_then(Value::as_str), title, "{parts:?}");
    }
}

#[test]
fn every_source_has_its_form_for_gemini_and_bedrock() {
    let stored = "https://generativelanguage.googleapis.com/v1beta/files/abc";
    let words = "<file name=\"document\">\n# Grüße\n</file>";
    for (kind, part, expected) in [
        (
            ProviderKind::Gemini,
            url("image", "https://h/a.JPG?x=1#y"),
            json!({"fileData": {"mimeType": "image/jpeg", "fileUri": "https://h/a.JPG?x=1#y"}}),
        ),
        (
            ProviderKind::Gemini,
            url("image", stored),
            json!({"fileData": {"fileUri": stored}}),
        ),
        (
            ProviderKind::Gemini,
            url("image", "data:image/png;base64,AAAA"),
            json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
        ),
        (
            ProviderKind::Gemini,
            base64("document", "application/pdf", "JVBERg=="),
            json!({"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}}),
        ),
        (
            ProviderKind::Gemini,
            base64("document", "text/markdown; charset=utf-8", "IyBHcsO8w59l"),
            json!({"text": words}),
        ),
        (
            ProviderKind::Bedrock,
            base64("image", "image/png", "AAAA"),
            json!({"image": {"format": "png", "source": {"bytes": "AAAA"}}}),
        ),
        (
            ProviderKind::Bedrock,
            url("image", "data:image/jpg;base64,AAAA"),
            json!({"image": {"format": "jpeg", "source": {"bytes": "AAAA"}}}),
        ),
        (
            ProviderKind::Bedrock,
            url("image", "s3://bucket/a.WEBP"),
            json!({"image": {"format": "webp", "source": {"s3Location": {"uri": "s3://bucket/a.WEBP"}}}}),
        ),
        (
            ProviderKind::Bedrock,
            url("image", "https://h/a.png"),
            json!({"text": "[A picture at https://h/a.png, which can't be opened here]"}),
        ),
        (
            ProviderKind::Bedrock,
            base64("document", "application/pdf", "AAAA"),
            json!({"document": {"format": "pdf", "name": "document", "source": {"bytes": "AAAA"}}}),
        ),
        (
            ProviderKind::Bedrock,
            base64("document", "video/mp4", "AAAA"),
            json!({"video": {"format": "mp4", "source": {"bytes": "AAAA"}}}),
        ),
        (
            ProviderKind::Bedrock,
            base64("document", "text/plain", "IyBHcsO8w59l"),
            json!({"text": words}),
        ),
    ] {
        let parts = sent(kind, &part);
        assert!(parts.contains(&expected), "{kind:?} {part}: {parts:?}");
    }
}
