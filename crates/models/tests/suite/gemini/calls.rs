//! Calls that are repeated, and completions that only the provider can read.

use serde_json::json;
use test_support::gemini_chunks::{chunk, last};
use values::message::ContentPart;

use super::support::{plain, stream};
use crate::support::error;

#[test]
fn a_call_that_is_repeated_is_one_call() {
    let call = json!({"functionCall": {"id": "a", "name": "t", "args": {"x": 1}}});
    let written = json!({"functionCall": {"id": "a", "name": "t", "args": "{\"x\":1}"}});
    let (_, response) = stream(&[chunk(&[call]), last(&[written], "STOP")]);
    let content = response.unwrap().content;
    let [ContentPart::ToolCall(call)] = content.as_slice() else {
        panic!("{content:?}")
    };
    assert_eq!((call.id.as_str(), call.arguments.as_str()), ("a", "{\"x\":1}"));
}

#[test]
fn parts_that_only_the_provider_reads_are_no_answer() {
    let mut found = last(&[json!({"text": ""})], "STOP");
    found["candidates"][0]["groundingMetadata"] = json!({"webSearchQueries": ["q"]});
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
    for body in [last(&[code], "STOP"), found] {
        assert_eq!(
            error(plain(&body)).1,
            "the response has no text and no tool call",
            "{body}"
        );
    }
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    assert!(plain(&last(&[picture], "STOP")).1.is_ok());
}
