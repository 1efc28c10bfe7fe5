//! Requests of responses: the same bytes each time, nothing kept by the provider, and a place for
//! every kind of content.

use std::sync::Arc;

use agent::ports::ModelRequest;
use models::ProviderSettings;
use serde_json::{Value, json};
use test_support::wires::encode_request;
use values::message::{ContentPart, DocumentPart, ImagePart, MediaSource, Role};
use values::model_ref::ResponseFormat;

use super::support::{encoded, settings};
use crate::support::{
    at_url, base64, call, greeting, instruction, message, named_call, parameters, request, result, says, tool, user,
};

fn properties() -> Value {
    json!({"type": "object", "properties": {"b": {}, "a": {}}})
}

#[test]
fn a_request_is_whole_and_leaves_nothing_with_the_provider() {
    let body = encode_request(
        &ModelRequest {
            model: "gpt-5".to_owned(),
            system: "Be brief.".into(),
            tools: Arc::new([tool(properties())]),
            response_format: ResponseFormat::JsonSchema {
                name: "n".to_owned(),
                schema: json!({"type": "object"}),
                strict: true,
            },
            max_output_tokens: Some(100),
            parameters: parameters(
                json!({"temperature": 0.5, "top_p": 0.25, "reasoning_effort": "low", "stop": ["x"]}),
            ),
            ..greeting()
        },
        &settings("p"),
        true,
    );
    assert_eq!(
        String::from_utf8(body).unwrap(),
        concat!(
            r#"{"model":"gpt-5","instructions":"Be brief.","#,
            r#""tools":[{"type":"function","name":"t","description":"d","#,
            r#""parameters":{"properties":{"a":{},"b":{}},"type":"object"},"strict":false}],"#,
            r#""store":false,"include":["reasoning.encrypted_content"],"#,
            r#""input":[{"content":[{"text":"hi","type":"input_text"}],"role":"user","type":"message"}],"#,
            r#""stream":true,"tool_choice":"auto","#,
            r#""text":{"format":{"name":"n","schema":{"type":"object"},"strict":true,"type":"json_schema"}},"#,
            r#""reasoning":{"effort":"low"},"temperature":0.5,"top_p":0.25,"max_output_tokens":100}"#,
        )
    );
    let bare = encode_request(&request(vec![]), &settings("p"), false);
    let expected = r#"{"model":"m","store":false,"include":["reasoning.encrypted_content"],"input":[],"stream":false}"#;
    assert_eq!(String::from_utf8(bare).unwrap(), expected);
    let object = ModelRequest {
        response_format: ResponseFormat::JsonObject,
        ..request(vec![])
    };
    assert_eq!(encoded(&object)["text"], json!({"format": {"type": "json_object"}}));
}

#[test]
fn the_next_request_begins_with_the_bytes_of_this_one() {
    let history = [
        user("one"),
        message(Role::Assistant, vec![call("c1", "{\"a\": 1.0e2}"), call("", "{}")]),
        result("c1", vec![ContentPart::text("r")]),
        result("", vec![ContentPart::text("r")]),
        says("done"),
        user("two"),
    ];
    let of = |count: usize, max_output_tokens| ModelRequest {
        system: "Be brief.".into(),
        tools: Arc::new([tool(properties())]),
        max_output_tokens,
        parameters: parameters(json!({"temperature": 1.0, "extra": {"user": "u", "include": []}})),
        ..request(history[..count].to_vec())
    };
    // A request ends before a call is made or after all of its results.
    let counts = [1, 4, 5, 6];
    for (earlier, later) in counts.iter().zip(&counts[1..]) {
        let first = encode_request(&of(*earlier, Some(20)), &settings("p"), true);
        let second = encode_request(&of(*later, None), &settings("p"), false);
        let text = String::from_utf8(first).unwrap();
        let (prefix, rest) = text.rsplit_once("],\"stream\":true").unwrap();
        let end = r#","tool_choice":"auto","temperature":1.0,"max_output_tokens":20,"include":[],"user":"u"}"#;
        assert_eq!(rest, end);
        assert!(second.starts_with(prefix.as_bytes()), "{earlier} {later}");
    }
}

#[test]
fn every_kind_of_content_is_encoded() {
    let image = |detail: Option<&str>| {
        ContentPart::Image(ImagePart {
            source: base64("image/png", "AAAA"),
            detail: detail.map(str::to_owned),
        })
    };
    let linked = ContentPart::Image(ImagePart {
        source: at_url("https://example.org/a.png"),
        detail: None,
    });
    let document = |source: MediaSource, name: Option<&str>| {
        ContentPart::Document(DocumentPart {
            source,
            name: name.map(str::to_owned),
        })
    };
    let pdf = || base64("application/pdf", "JVBE");
    let body = encoded(&request(vec![
        message(
            Role::User,
            vec![
                ContentPart::text("look"),
                image(Some("low")),
                linked,
                document(pdf(), Some("a.pdf")),
                document(pdf(), None),
                document(at_url("https://example.org/a.pdf"), Some("a.pdf")),
                ContentPart::Unknown(json!({"type": "x"})),
            ],
        ),
        message(
            Role::Assistant,
            vec![named_call("c1", "multi_tool_use.parallel", ""), call("c2", "not json")],
        ),
        result("c1", vec![ContentPart::text("a"), ContentPart::text("b")]),
        result("c2", vec![ContentPart::text("a"), image(None)]),
        instruction("later"),
        message(Role::User, vec![]),
    ]));
    let picture =
        |detail: &str| json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": detail});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let file =
        |name: &str| json!({"type": "input_file", "filename": name, "file_data": "data:application/pdf;base64,JVBE"});
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
    let output = |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let said = |role: &str, content: Value| json!({"type": "message", "role": role, "content": content});
    let expected = json!([
        said(
            "user",
            json!([
                text("look"),
                picture("low"),
                {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
                file("a.pdf"),
                file("document"),
                {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            ])
        ),
        call("c1", "multi_tool_use_parallel", "{}"),
        call("c2", "t", "not json"),
        output("c1", json!("a\nb")),
        output("c2", json!([text("a"), picture("auto")])),
        said("system", json!([text("later")])),
        said("user", json!([text("")])),
    ]);
    assert_eq!(body["input"], expected);
    assert_eq!(
        (body.get("tools"), body.get("tool_choice"), body.get("text")),
        (None, None, None)
    );
}

#[test]
fn the_bound_of_the_answer_is_one_that_the_server_accepts() {
    for (left, most, sent) in [
        (None, Some(8_192), None),
        (Some(1), None, Some(16)),
        (Some(16), None, Some(16)),
        (Some(4_096), None, Some(4_096)),
        (Some(1_000_000), None, None),
        (Some(1_000_000), Some(32_768), Some(32_768)),
    ] {
        let limited = ProviderSettings {
            max_output_tokens: most,
            ..settings("p")
        };
        let request = ModelRequest {
            max_output_tokens: left,
            ..greeting()
        };
        let body: Value = serde_json::from_slice(&encode_request(&request, &limited, true)).unwrap();
        assert_eq!(
            body.get("max_output_tokens").and_then(Value::as_u64),
            sent,
            "{left:?} {most:?}"
        );
    }
}

#[test]
fn further_parameters_are_added_and_replace_nothing() {
    let extra = json!({
        "store": true, "input": "no", "model": "no", "stream": false, "instructions": "kept where there are none",
        "reasoning": {"effort": "high", "summary": "auto"}, "text": {"verbosity": "low", "format": {"type": "text"}},
        "service_tier": "flex",
    });
    let body = encoded(&ModelRequest {
        response_format: ResponseFormat::JsonObject,
        parameters: parameters(json!({"reasoning_effort": "low", "extra": extra})),
        ..greeting()
    });
    let expected = json!({
        "model": "m", "store": false, "include": ["reasoning.encrypted_content"], "stream": true,
        "instructions": "kept where there are none", "service_tier": "flex",
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low", "format": {"type": "json_object"}},
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
    });
    assert_eq!(body, expected);
}

#[test]
fn encrypted_reasoning_is_requested_from_models_that_may_reason_by_default() {
    let include = |model: &str, extra: Value| {
        let body = encoded(&ModelRequest {
            model: model.to_owned(),
            parameters: parameters(json!({"extra": extra})),
            ..request(vec![])
        });
        body.get("include").cloned()
    };
    assert_eq!(include("o3", json!({})), Some(json!(["reasoning.encrypted_content"])));
    assert_eq!(include("gpt-4.1", json!({})), None);
    assert_eq!(include("o3", json!({"include": []})), Some(json!([])));
}
