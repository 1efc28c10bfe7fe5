//! The parts of a request around its messages: tools, limits, parameters, and marks for the cache.

use std::sync::Arc;

use agent::ports::ModelRequest;
use models::ProviderSettings;
use serde_json::{Value, json};
use test_support::wires::encode_request;
use values::message::{ContentPart, Role};
use values::model_parameters::ModelParameters;
use values::model_ref::ResponseFormat;

use super::histories::{encoded, tool};
use super::support::settings;
use crate::support::{at_url, call, greeting, image, message, owned, request, result, thought};

#[test]
fn the_next_request_begins_with_the_bytes_of_this_one() {
    let image = image(at_url("https://example.org/a.png"));
    let mut messages = vec![message(Role::User, vec![image, ContentPart::text("hi")])];
    let mut bodies: Vec<String> = Vec::new();
    for step in 0_u64..4 {
        let body = ModelRequest {
            system: "s".into(),
            tools: [tool("t")].into(),
            max_output_tokens: Some(100 - step),
            ..request(messages.clone())
        };
        let body = String::from_utf8(encode_request(&body, &settings(), true)).unwrap();
        let mark = r#""cache_control":{"type":"ephemeral"}"#;
        assert_eq!(
            body.matches(mark).count(),
            3,
            "the tools, the instructions and the whole: {body}"
        );
        if let Some(before) = bodies.last() {
            let end = before.find("],\"stream\":").unwrap();
            assert!(body.starts_with(&before[..end]), "{body}\n{before}");
        }
        bodies.push(body);
        let id = format!("c{step}");
        messages.push(owned(
            "p",
            vec![thought("Let me see.", Some("s")), call(&id, "{\"b\": 1,  \"a\": 1e2}")],
        ));
        messages.push(result(&id, vec![ContentPart::text("ok ")]));
    }
    assert!(
        bodies[1].contains(r#""input":{"b": 1,  "a": 1e2}"#),
        "verbatim: {}",
        bodies[1]
    );
}

#[test]
fn no_more_tokens_are_asked_for_than_the_server_accepts() {
    for (left, asked, most, expected) in [
        (None, None, None, 16_384),
        (Some(1_000), None, None, 1_000),
        (Some(1_000_000), None, None, 16_384),
        (Some(30_000), Some(30_000), None, 30_000),
        (Some(20_000), Some(30_000), None, 20_000),
        (Some(30_000), Some(30_000), Some(8_000), 8_000),
        (None, None, Some(64_000), 64_000),
        (Some(0), None, None, 1),
    ] {
        let request = ModelRequest {
            max_output_tokens: left,
            parameters: Arc::new(ModelParameters {
                max_output_tokens: asked,
                ..ModelParameters::default()
            }),
            ..greeting()
        };
        let limited = ProviderSettings {
            max_output_tokens: most,
            ..settings()
        };
        let body: Value = serde_json::from_slice(&encode_request(&request, &limited, false)).unwrap();
        assert_eq!(body["max_tokens"], expected, "{left:?} {asked:?} {most:?}");
        assert_eq!(body["stream"], false);
    }
}

#[test]
fn thinking_leaves_room_for_an_answer() {
    for (budget, left, asked, thinking, max_tokens) in [
        (8_000, None, None, Some(8_000), 24_384),
        (8_000, Some(20_000), None, Some(8_000), 20_000),
        (8_000, Some(8_000), None, Some(7_999), 8_000),
        (8_000, Some(1_025), None, Some(1_024), 1_025),
        (8_000, Some(1_024), None, None, 1_024),
        (8_000, None, Some(4_000), Some(3_999), 4_000),
    ] {
        let body = encoded(&ModelRequest {
            max_output_tokens: left,
            parameters: Arc::new(ModelParameters {
                max_output_tokens: asked,
                extra: serde_json::from_value(json!({"thinking": {"type": "enabled", "budget_tokens": budget}}))
                    .unwrap(),
                ..ModelParameters::default()
            }),
            ..greeting()
        });
        let expected = match thinking {
            Some(budget) => json!({"type": "enabled", "budget_tokens": budget}),
            None => json!({"type": "disabled"}),
        };
        assert_eq!(
            (&body["thinking"], &body["max_tokens"]),
            (&expected, &json!(max_tokens))
        );
    }
}

#[test]
fn parameters_have_their_fields_and_extra_fields_replace_none() {
    let body = |parameters: Value, format: ResponseFormat| {
        let mut body = encoded(&ModelRequest {
            parameters: Arc::new(serde_json::from_value(parameters).unwrap()),
            response_format: format,
            ..greeting()
        });
        let body = body.as_object_mut().unwrap();
        for field in ["model", "messages", "stream", "max_tokens"] {
            assert_ne!(body.remove(field), Some(json!("theirs")), "{field}");
        }
        Value::Object(std::mem::take(body))
    };
    let mark = json!({"type": "ephemeral"});
    let shape = || ResponseFormat::JsonSchema {
        name: "n".to_owned(),
        schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        strict: true,
    };
    let sent_shape =
        json!({"type": "json_schema", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}});
    for (parameters, format, expected) in [
        (json!({}), ResponseFormat::Text, json!({"cache_control": mark})),
        (
            json!({"temperature": 0.5, "top_p": 0.25, "stop": ["END"]}),
            ResponseFormat::Text,
            json!({"cache_control": mark, "temperature": 0.5, "top_p": 0.25, "stop_sequences": ["END"]}),
        ),
        (
            json!({"reasoning_effort": "low"}),
            ResponseFormat::Text,
            json!({"cache_control": mark, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ),
        (
            json!({"reasoning_effort": "max", "temperature": 1.0, "extra": {
                "output_config": {"effort": "low", "task_budget": 7}, "thinking": {"type": "disabled"}, "cache_control": null,
                "temperature": 0.5, "top_k": 5, "model": "theirs", "messages": "theirs", "stream": "theirs", "max_tokens": "theirs",
                "tools": "theirs", "system": "theirs"}}),
            shape(),
            json!({"thinking": {"type": "disabled"}, "temperature": 1.0, "top_k": 5,
                "output_config": {"effort": "max", "task_budget": 7, "format": sent_shape}}),
        ),
        (
            json!({"extra": {"cache_control": {"type": "ephemeral", "ttl": "1h"}, "output_config": 1}}),
            shape(),
            json!({"cache_control": {"type": "ephemeral", "ttl": "1h"}, "output_config": {"format": sent_shape}}),
        ),
    ] {
        assert_eq!(body(parameters.clone(), format), expected, "{parameters}");
    }
}

#[test]
fn all_marks_are_one_and_an_agent_may_choose_it() {
    let hour = json!({"type": "ephemeral", "ttl": "1h"});
    for (extra, mark) in [
        (json!({}), json!({"type": "ephemeral"})),
        (json!({"cache_control": hour}), hour.clone()),
        (json!({"cache_control": null}), Value::Null),
    ] {
        let body = encoded(&ModelRequest {
            system: "s".into(),
            tools: [tool("a"), tool("b")].into(),
            parameters: Arc::new(serde_json::from_value(json!({"extra": extra})).unwrap()),
            ..greeting()
        });
        let marked = [&body["tools"][1], &body["system"][0], &body];
        assert_eq!(marked.map(|position| &position["cache_control"]), [&mark; 3], "{extra}");
        assert_eq!(body["tools"][0].get("cache_control"), None);
        assert!(!body.to_string().contains("null"), "{body}");
    }
}
