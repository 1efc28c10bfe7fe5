//! Requests: the messages, and what they hold besides.

use std::sync::Arc;

use agent::ports::ModelRequest;
use models::ProviderKind;
use serde_json::{Value, json};
use test_support::wires::{self, encode_request};
use values::message::{ContentPart, DocumentPart, Message, Role};
use values::model_ref::ResponseFormat;

use crate::support::{
    at_url, base64, call, greeting, image, instruction, message, owned, parameters, request, result, thought, tool,
    user,
};

fn encoded(request: &ModelRequest) -> String {
    let settings = wires::settings("p", ProviderKind::OllamaChat);
    String::from_utf8(encode_request(request, &settings, true)).unwrap()
}

fn body(request: &ModelRequest) -> Value {
    serde_json::from_str(&encoded(request)).unwrap()
}

fn messages(history: Vec<Message>) -> Value {
    body(&request(history))["messages"].clone()
}

#[test]
fn a_bare_request_has_only_required_fields() {
    assert_eq!(
        encoded(&greeting()),
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#
    );
}

#[test]
fn tools_stand_before_and_parameters_after_the_messages() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let asked = ModelRequest {
        system: "Be brief.".into(),
        tools: Arc::new([tool(schema.clone())]),
        max_output_tokens: Some(100),
        parameters: parameters(
            json!({"temperature": 0.5, "top_p": 0.25, "stop": ["END"], "reasoning_effort": "low",
            "extra": {"keep_alive": "5m", "options": {"num_ctx": 8192, "temperature": 1}}}),
        ),
        ..greeting()
    };
    let function = json!({"name": "t", "description": "d", "parameters": schema});
    assert_eq!(
        body(&asked),
        json!({
            "model": "m",
            "tools": [{"type": "function", "function": function}],
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
            "stream": true,
            "think": "low",
            "options": {"temperature": 0.5, "top_p": 0.25, "stop": ["END"], "num_predict": 100, "num_ctx": 8192},
            "keep_alive": "5m",
        })
    );
    let quiet = ModelRequest {
        parameters: parameters(json!({"reasoning_effort": "none"})),
        ..greeting()
    };
    assert_eq!(body(&quiet)["think"], false);
}

#[test]
fn a_response_format_is_a_word_or_a_schema() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let of_schema = ResponseFormat::JsonSchema {
        name: "n".to_owned(),
        schema: schema.clone(),
        strict: true,
    };
    for (format, expected) in [
        (ResponseFormat::Text, Value::Null),
        (ResponseFormat::JsonObject, json!("json")),
        (of_schema, schema),
    ] {
        let asked = ModelRequest {
            response_format: format,
            ..greeting()
        };
        assert_eq!(body(&asked)["format"], expected);
    }
}

#[test]
fn results_follow_their_calls_and_reasoning_goes_back_to_its_model() {
    let parts = vec![thought("hm", None), ContentPart::text("a"), call("c1", "{\"b\": 1e2}")];
    let history = |provider: &str| {
        messages(vec![
            user("hi"),
            owned(provider, parts.clone()),
            result("c1", vec![ContentPart::text("1"), ContentPart::text("2")]),
            instruction("Be brief."),
        ])
    };
    let function = json!({"name": "t", "arguments": {"b": 1e2}});
    let mut answer = json!({"role": "assistant", "content": "a", "tool_calls": [{"id": "c1", "function": function}]});
    let rest = [
        json!({"role": "tool", "content": "1\n2", "tool_name": "t", "tool_call_id": "c1"}),
        json!({"role": "system", "content": "Be brief."}),
    ];
    let hi = json!({"role": "user", "content": "hi"});
    assert_eq!(history("q"), json!([hi, answer, rest[0], rest[1]]));
    answer["thinking"] = json!("hm");
    assert_eq!(history("p"), json!([hi, answer, rest[0], rest[1]]));
}

#[test]
fn pictures_are_data_and_other_media_are_words() {
    let file = ContentPart::Document(DocumentPart {
        source: base64("application/pdf", "JVBE"),
        name: Some("a.pdf".to_owned()),
    });
    let parts = vec![
        ContentPart::text("See"),
        image(base64("image/png", "AAAA")),
        image(at_url("data:image/png;base64,BBBB")),
        image(at_url("https://h/a.png")),
        file,
    ];
    let lines = [
        "See",
        "[a picture at https://h/a.png, which can't be opened here]",
        "[a file \"a.pdf\", left out: this model takes no files]",
    ];
    assert_eq!(
        messages(vec![message(Role::User, parts)]),
        json!([{"role": "user", "content": lines.join("\n"), "images": ["AAAA", "BBBB"]}])
    );
}
