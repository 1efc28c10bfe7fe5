//! Requests: equal to what was recorded, the same bytes each time, and a place for every kind of
//! content.

use std::sync::Arc;

use agent::ports::{ModelRequest, ToolSpec};
use models::ProviderSettings;
use serde_json::{Value, json};
use test_support::model_server::{ModelServer, Reply};
use test_support::wires::{chat_settings, encode_request};
use values::json::RawJson;
use values::message::{ContentPart, DocumentPart, ImagePart, Message, ProviderFields, Role, ToolCall};
use values::model_ref::ResponseFormat;

use crate::recordings::{CHAT, exchanges};
use crate::support::{
    answered, ask, at_url, base64, call, client, greeting, image, impatient, instruction, made_by, message, named_call,
    opaque, refusal, request, result, says, user,
};

pub(super) fn encoded(request: &ModelRequest) -> Value {
    serde_json::from_slice(&encode_request(request, &chat_settings("p"), true)).unwrap()
}

/// Reads a recorded message as the neutral one that it must have come from.
fn neutral(recorded: &Value) -> Message {
    let text = |name: &str| recorded[name].as_str().unwrap_or_default();
    if recorded["role"] == "tool" {
        return result(text("tool_call_id"), vec![ContentPart::text(text("content"))]);
    }
    let mut content = Vec::new();
    match &recorded["content"] {
        Value::String(text) => content.push(ContentPart::text(text)),
        Value::Array(blocks) => content.extend(blocks.iter().map(|block| match block["text"].as_str() {
            Some(text) => ContentPart::text(text),
            None => opaque("p", &block.to_string()),
        })),
        _ => {}
    }
    for call in recorded["tool_calls"].as_array().into_iter().flatten() {
        content.push(ContentPart::ToolCall(ToolCall {
            id: call["id"].as_str().unwrap().to_owned(),
            name: call["function"]["name"].as_str().unwrap().to_owned(),
            arguments: call["function"]["arguments"].as_str().unwrap().to_owned(),
            signature: None,
        }));
    }
    let role = match text("role") {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        other => panic!("{other}"),
    };
    let reasoning = recorded.get("reasoning").map(|raw| ProviderFields {
        fields: vec![("reasoning".to_owned(), RawJson::new(raw.to_string()))],
        ..ProviderFields::owner("p")
    });
    Message {
        provider_fields: reasoning,
        ..message(role, content)
    }
}

/// Drops what means nothing: nulls, empty lists, false flags.
fn meaning(message: &Value) -> Value {
    let empty = [Value::Null, json!([]), json!(false)];
    let fields = message
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| !empty.contains(value));
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn spec(function: &Value) -> ToolSpec {
    ToolSpec {
        name: function["name"].as_str().unwrap().to_owned(),
        description: function["description"].as_str().unwrap().to_owned(),
        parameters: function["parameters"].clone(),
        ..ToolSpec::default()
    }
}

#[test]
fn recorded_requests_are_rebuilt_from_neutral_messages() {
    for (label, exchange) in exchanges(&CHAT) {
        let recorded = &exchange.request.body;
        let messages = recorded["messages"].as_array().unwrap();
        let tools = recorded["tools"].as_array().into_iter().flatten();
        let tools = tools.map(|tool| spec(&tool["function"]));
        let format = recorded.get("response_format").map(|format| &format["json_schema"]);
        let model = recorded["model"].as_str().unwrap();
        let body = encoded(&ModelRequest {
            model: model.to_owned(),
            tools: tools.collect(),
            response_format: format.map_or(ResponseFormat::Text, |format| ResponseFormat::JsonSchema {
                name: format["name"].as_str().unwrap().to_owned(),
                schema: format["schema"].clone(),
                strict: format["strict"].as_bool().unwrap(),
            }),
            ..request(
                messages
                    .iter()
                    .map(|message| made_by(neutral(message), model))
                    .collect(),
            )
        });
        let got: Vec<_> = body["messages"].as_array().unwrap().iter().map(meaning).collect();
        let wanted: Vec<_> = messages.iter().map(meaning).collect();
        assert_eq!(got, wanted, "{label}");
        assert_eq!(body["model"], recorded["model"], "{label}");
        assert_eq!(body["response_format"], recorded["response_format"], "{label}");
        for (got, wanted) in body["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .zip(recorded["tools"].as_array().into_iter().flatten())
        {
            assert_eq!(
                got["function"]["parameters"], wanted["function"]["parameters"],
                "{label}"
            );
            assert_eq!(got["function"]["name"], wanted["function"]["name"], "{label}");
        }
    }
}

#[test]
fn the_next_request_begins_with_the_bytes_of_this_one() {
    let parameters = json!({"type": "object", "properties": {"b": {}, "a": {}}});
    let tool = spec(&json!({"name": "t", "description": "d", "parameters": parameters}));
    let image = image(at_url("https://example.org/a.png"));
    let history = [
        user("one"),
        message(Role::Assistant, vec![call("c1", "{\"a\": 1.0e2}"), call("c2", "{}")]),
        result("c1", vec![ContentPart::text("r"), image]),
        result("c2", vec![ContentPart::text("r")]),
        says("done"),
        user("two"),
    ];
    let of = |count: usize, max_output_tokens| ModelRequest {
        system: "Be brief.".into(),
        tools: Arc::new([tool.clone()]),
        response_format: ResponseFormat::JsonObject,
        max_output_tokens,
        ..request(history[..count].to_vec())
    };
    // A request ends before a call is made or after all of its results.
    let counts = [1, 4, 5, 6];
    for (earlier, later) in counts.iter().zip(&counts[1..]) {
        let first = encode_request(&of(*earlier, Some(10)), &chat_settings("p"), true);
        let second = encode_request(&of(*later, None), &chat_settings("p"), false);
        let text = String::from_utf8(first).unwrap();
        let (prefix, rest) = text.rsplit_once("],\"stream\":true").unwrap();
        let end = r#","tool_choice":"auto","stream_options":{"include_usage":true},"max_tokens":10}"#;
        assert_eq!(rest, end);
        assert!(second.starts_with(prefix.as_bytes()), "{earlier} {later}");
    }
    let text = String::from_utf8(encode_request(&of(1, None), &chat_settings("p"), true)).unwrap();
    let order = [
        "\"model\"",
        "\"tools\"",
        "\"response_format\"",
        "\"messages\"",
        "\"stream\"",
        "\"tool_choice\"",
    ];
    let positions: Vec<_> = order.iter().map(|name| text.find(name).unwrap()).collect();
    assert!(positions.is_sorted(), "{text}");
}

#[test]
fn every_kind_of_content_is_encoded() {
    let image = ContentPart::Image(ImagePart {
        source: base64("image/png", "AAAA"),
        detail: Some("low".to_owned()),
    });
    let document = ContentPart::Document(DocumentPart {
        source: base64("application/pdf", "JVBE"),
        name: Some("a.pdf".to_owned()),
    });
    let named = Message {
        name: Some("Ann".to_owned()),
        ..user("hi")
    };
    let oddly_named = Message {
        name: Some("Ann Lee\n".to_owned()),
        ..user("hi")
    };
    let body = encoded(&ModelRequest {
        system: "S".into(),
        ..request(vec![
            message(
                Role::User,
                vec![
                    ContentPart::text("look"),
                    image.clone(),
                    ContentPart::text(""),
                    document,
                    ContentPart::Unknown(json!({"type": "x"})),
                ],
            ),
            message(Role::Assistant, vec![call("c1", "{}"), call("c2", "{}")]),
            result(
                "c1",
                vec![ContentPart::text("a"), ContentPart::text("b"), image.clone()],
            ),
            result("c2", vec![image]),
            named,
            oddly_named,
            instruction("later"),
            message(Role::Assistant, vec![refusal("no")]),
        ])
    });
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}});
    let tool_call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}});
    let expected = json!([
        {"role": "system", "content": "S"},
        {"role": "user", "content": [
            {"type": "text", "text": "look"},
            picture,
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
        ]},
        {"role": "assistant", "content": null, "tool_calls": [tool_call("c1"), tool_call("c2")]},
        {"role": "tool", "tool_call_id": "c1", "content": "a\nb"},
        {"role": "tool", "tool_call_id": "c2", "content": "The result follows as an attachment."},
        {"role": "user", "content": [
            {"type": "text", "text": "Attachments of the result of t (c1):"},
            picture,
            {"type": "text", "text": "Attachments of the result of t (c2):"},
            picture,
        ]},
        {"role": "user", "content": "hi", "name": "Ann"},
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "later"},
        {"role": "assistant", "content": "no"},
    ]);
    assert_eq!(body["messages"], expected);
    assert_eq!(body.get("tools"), None);
}

#[test]
fn a_refusal_has_its_field_where_the_server_knows_it() {
    let openai = ProviderSettings {
        base_url: None,
        ..chat_settings("p")
    };
    let refused = message(Role::Assistant, vec![refusal("no")]);
    let body: Value = serde_json::from_slice(&encode_request(&request(vec![refused]), &openai, true)).unwrap();
    assert_eq!(
        body["messages"][0],
        json!({"role": "assistant", "content": null, "refusal": "no"})
    );
}

#[test]
fn arguments_go_back_verbatim_and_broken_ones_are_wrapped() {
    for (arguments, sent) in [
        (
            "{\"n\": 12345678901234567890123, \"b\":1}",
            "{\"n\": 12345678901234567890123, \"b\":1}",
        ),
        (" {} ", " {} "),
        ("[1]", r#"{"invalid_json":"[1]"}"#),
        ("null", r#"{"invalid_json":"null"}"#),
        ("", "{}"),
        ("  ", "{}"),
        ("{\"a\": ", r#"{"invalid_json":"{\"a\": "}"#),
        ("not json", r#"{"invalid_json":"not json"}"#),
    ] {
        let body = encoded(&request(vec![message(Role::Assistant, vec![call("c", arguments)])]));
        assert_eq!(
            body["messages"][0]["tool_calls"][0]["function"]["arguments"], sent,
            "{arguments}"
        );
    }
}

#[test]
fn the_bound_of_the_answer_has_the_name_that_the_server_knows() {
    for (host, name) in [
        ("h.example", "max_tokens"),
        ("api.openai.com", "max_completion_tokens"),
        ("x.openai.azure.com", "max_completion_tokens"),
    ] {
        let server = ProviderSettings {
            base_url: Some(format!("https://{host}/v1")),
            ..chat_settings("p")
        };
        let request = ModelRequest {
            max_output_tokens: Some(7),
            ..request(vec![])
        };
        let text = String::from_utf8(encode_request(&request, &server, false)).unwrap();
        let expected = format!(r#"{{"model":"m","messages":[],"stream":false,"{name}":7}}"#);
        assert_eq!(text, expected);
    }
}

#[test]
fn no_more_tokens_are_asked_for_than_the_server_accepts() {
    for (left, most, sent) in [
        (None, None, None),
        (None, Some(8_192), None),
        (Some(10), None, Some(10)),
        (Some(4_096), None, Some(4_096)),
        (Some(4_097), None, None),
        (Some(1_000_000), None, None),
        (Some(1_000_000), Some(32_768), Some(32_768)),
        (Some(10), Some(32_768), Some(10)),
    ] {
        let limited = ProviderSettings {
            max_output_tokens: most,
            ..chat_settings("p")
        };
        let request = ModelRequest {
            max_output_tokens: left,
            ..greeting()
        };
        let body: Value = serde_json::from_slice(&encode_request(&request, &limited, true)).unwrap();
        assert_eq!(
            body.get("max_tokens").and_then(Value::as_u64),
            sent,
            "{left:?} {most:?}"
        );
    }
}

/// Fields of a provider must reach it again byte for byte, and no other provider.
#[tokio::test]
async fn provider_fields_survive_the_way_through_the_history() {
    let raw = [
        ("reasoning", r#""é \u00e9 \/ ok""#),
        (
            "reasoning_details",
            r#"[{"type":"reasoning.text", "text":"a","signature":"s==", "n":1.0e2},{"type":"reasoning.text","text":"b"}]"#,
        ),
        (
            "extra_content",
            r#"{"google": {"thought_signature":"A+/=", "big":12345678901234567890123}}"#,
        ),
    ];
    let fields = raw
        .iter()
        .flat_map(|(name, raw)| ["\"", *name, "\": ", *raw, ","])
        .collect::<String>();
    let thinking = r#"{"type": "thinking","thinking":[{"type":"text", "text":"hm"}],"signature":"x"}"#;
    let mark = r#"{"google":{"thought_signature" : "B"}}"#;
    let body = format!(
        r#"{{"choices": [{{"index": 0, "finish_reason": "tool_calls", "message": {{"role": "assistant", {fields}
            "channel": "final", "annotations": [],
            "content": [{thinking}, {{"type": "text", "text": "hello"}}],
            "tool_calls": [{{"id": "c1", "type": "function", "function": {{"name": "t", "arguments": "{{ }}"}}, "extra_content": {mark}}}]
        }}}}]}}"#
    );
    let server = ModelServer::start(vec![Reply::new(200, "application/json", body)]).await;
    let outcome = ask(client(&server, &impatient(0)).as_ref(), greeting()).await;
    let answer = answered(outcome.end.as_ref().unwrap());
    let history = request(vec![user("hi"), answer, result("c1", vec![ContentPart::text("r")])]);

    let own = String::from_utf8(encode_request(&history, &chat_settings("test"), true)).unwrap();
    for (name, raw) in raw {
        assert!(own.contains(&format!("\"{name}\":{raw}")), "{name} in {own}");
    }
    assert!(own.contains(&format!("\"content\":[{thinking},")), "{own}");
    assert!(own.contains(&format!("\"extra_content\":{mark}")), "{own}");
    assert!(
        !own.contains("channel") && !own.contains("annotations"),
        "output that is not taken back: {own}"
    );

    let other: Value = serde_json::from_slice(&encode_request(&history, &chat_settings("other"), true)).unwrap();
    let call = json!({"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{ }"}});
    let expected = json!({"role": "assistant", "content": "hello", "tool_calls": [call]});
    assert_eq!(other["messages"][1], expected);
}

#[test]
fn names_and_ids_that_servers_refuse_are_replaced_on_the_wire() {
    let named = |id: &str, name: &str| named_call(id, name, "{}");
    let calls = vec![named("c1", "multi_tool_use.parallel"), named("", ""), named("", "t")];
    let history = request(vec![
        user("go"),
        message(Role::Assistant, calls),
        result("c1", vec![ContentPart::text("one")]),
        result("", vec![ContentPart::text("two")]),
        result("", vec![ContentPart::text("three")]),
    ]);
    let body = encoded(&history);
    assert_eq!(body, encoded(&history), "the same in each request");
    let calls = body["messages"][1]["tool_calls"].as_array().unwrap();
    let names: Vec<_> = calls
        .iter()
        .map(|call| call["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["multi_tool_use_parallel", "_", "t"]);
    let ids: Vec<_> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
    let results: Vec<_> = (2..5)
        .map(|position| body["messages"][position]["tool_call_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, results);
    assert!(ids[0] == "c1" && !ids[1].is_empty() && ids[1] != ids[2], "{ids:?}");
}
