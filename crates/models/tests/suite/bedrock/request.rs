//! The parts of a request besides the conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::ports::{ModelRequest, ToolSpec};
use models::ProviderSettings;
use serde_json::{Value, json};
use test_support::wires::encode_request;
use values::message::{ContentPart, Role};
use values::model_parameters::{ModelParameters, ToolChoice};
use values::model_ref::ResponseFormat;

use super::support::{bytes_of, encoded, settings};
use crate::support::{call, greeting, message, opaque, owned, request, result, user};

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const NOVA: &str = "us.amazon.nova-micro-v1:0";

fn tool(description: &str, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: "t".to_owned(),
        description: description.to_owned(),
        parameters,
        ..ToolSpec::default()
    }
}

fn asked(model: &str, extra: &Value) -> ModelRequest {
    let parameters = ModelParameters {
        extra: extra.as_object().unwrap().clone(),
        ..ModelParameters::default()
    };
    ModelRequest {
        model: model.to_owned(),
        parameters: Arc::new(parameters),
        ..greeting()
    }
}

#[test]
fn a_bare_request_has_only_required_fields() {
    assert_eq!(
        String::from_utf8(bytes_of(&greeting())).unwrap(),
        r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}],"inferenceConfig":{}}"#
    );
}

#[test]
fn tools_have_no_empty_description() {
    let body = encoded(&ModelRequest {
        tools: Arc::new([
            tool("d", json!({"type": "object", "properties": {}})),
            tool(" ", json!({"type": "object"})),
        ]),
        ..greeting()
    });
    let schema = |schema: Value| json!({"json": schema});
    assert_eq!(
        body["toolConfig"],
        json!({"tools": [
            {"toolSpec": {"name": "t", "description": "d", "inputSchema": schema(json!({"type": "object", "properties": {}}))}},
            {"toolSpec": {"name": "t", "inputSchema": schema(json!({"type": "object"}))}},
        ]})
    );
}

#[test]
fn tools_that_are_gone_are_named_where_the_conversation_has_called_them() {
    let history = vec![
        user("hi"),
        message(Role::Assistant, vec![call("a", "{}")]),
        result("a", vec![]),
    ];
    let body = encoded(&request(history));
    let tools = body["toolConfig"]["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[0]["toolSpec"]["name"]), (1, &json!("t")));
}

#[test]
fn a_conversation_with_calls_of_system_tools_has_tools_where_none_may_be_called() {
    let called =
        json!({"toolUse": {"toolUseId": "s", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}});
    let answered = json!({"toolResult": {"toolUseId": "s", "content": [], "type": "nova_grounding_result"}});
    let history = vec![
        user("hi"),
        owned(
            "p",
            vec![opaque("p", &called.to_string()), opaque("p", &answered.to_string())],
        ),
        user("Sum it up."),
    ];
    let grounding = json!({"systemTool": {"name": "nova_grounding"}});
    let offered = BTreeMap::from([("p".to_owned(), vec![grounding.as_object().unwrap().clone()])]);
    for (provider_tools, tool_choice) in [(offered.clone(), ToolChoice::None), (BTreeMap::new(), ToolChoice::Auto)] {
        let body = encoded(&ModelRequest {
            provider_tools: Arc::new(provider_tools),
            tool_choice,
            ..request(history.clone())
        });
        assert_eq!(body["messages"][1]["content"], json!([called, answered]));
        // Not the system tool, which the model could call.
        let schema = json!({"json": {"type": "object"}});
        let tool =
            json!({"name": "system_tool", "description": "This tool can't be called any more.", "inputSchema": schema});
        assert_eq!(body["toolConfig"], json!({"tools": [{"toolSpec": tool}]}));
    }
    let body = encoded(&ModelRequest {
        provider_tools: Arc::new(offered),
        ..request(history)
    });
    assert_eq!(body["toolConfig"], json!({"tools": [grounding]}));
}

#[test]
fn thinking_leaves_room_for_an_answer() {
    for (left, most, thinking, sent) in [
        (None, None, Some(8_000), None),
        // What nobody vouches for is not sent.
        (Some(20_000), None, Some(8_000), None),
        (Some(20_000), Some(9_000), Some(8_000), Some(9_000)),
        (Some(20_000), Some(8_000), Some(7_999), Some(8_000)),
        (Some(4_000), None, Some(3_999), Some(4_000)),
        (Some(1_025), None, Some(1_024), Some(1_025)),
        (Some(1_024), None, None, Some(1_024)),
    ] {
        let budget = json!({"thinking": {"type": "enabled", "budget_tokens": 8_000}});
        for extra in [budget.clone(), json!({"additionalModelRequestFields": budget})] {
            let request = ModelRequest {
                max_output_tokens: left,
                ..asked(CLAUDE, &extra)
            };
            let limited = ProviderSettings {
                max_output_tokens: most,
                ..settings()
            };
            let body: Value = serde_json::from_slice(&encode_request(&request, &limited, true)).unwrap();
            let expected = match thinking {
                Some(budget) => json!({"type": "enabled", "budget_tokens": budget}),
                None => json!({"type": "disabled"}),
            };
            assert_eq!(
                body["additionalModelRequestFields"],
                json!({"thinking": expected}),
                "{left:?} {most:?}"
            );
            assert_eq!(body["inferenceConfig"].get("maxTokens").and_then(Value::as_u64), sent);
        }
    }
}

#[test]
fn fields_that_the_protocol_does_not_know_are_the_models_own() {
    let guard = json!({"guardrailIdentifier": "g"});
    let body = encoded(&asked(
        NOVA,
        &json!({"top_k": 3, "guardrailConfig": guard, "inferenceConfig": {"maxTokens": 5}, "messages": [],
               "additionalModelRequestFields": {"x": 1}}),
    ));
    assert_eq!(body["guardrailConfig"], guard);
    assert_eq!(body["inferenceConfig"], json!({"maxTokens": 5}));
    assert_eq!(
        body["additionalModelRequestFields"],
        json!({"top_k": 3, "messages": [], "x": 1})
    );
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "nothing is replaced");
    let parameters = ModelParameters {
        temperature: Some(0.5),
        top_p: Some(0.9),
        max_output_tokens: Some(20_000),
        stop: vec!["END".to_owned()],
        ..ModelParameters::default()
    };
    let body = encoded(&ModelRequest {
        max_output_tokens: Some(20_000),
        parameters: Arc::new(parameters),
        ..greeting()
    });
    let config = json!({"maxTokens": 20_000, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]});
    assert_eq!(body["inferenceConfig"], config);
}

#[test]
fn efforts_have_the_names_of_their_makers() {
    for (model, expected) in [
        (
            CLAUDE,
            json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ),
        ("openai.gpt-oss-120b-1:0", json!({"reasoning_effort": "low"})),
        (
            "us.amazon.nova-2-lite-v1:0",
            json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}),
        ),
        (NOVA, Value::Null),
    ] {
        let parameters = ModelParameters {
            reasoning_effort: Some("low".to_owned()),
            ..ModelParameters::default()
        };
        let body = encoded(&ModelRequest {
            parameters: Arc::new(parameters),
            ..asked(model, &json!({}))
        });
        assert_eq!(body["additionalModelRequestFields"], expected, "{model}");
    }
}

#[test]
fn tools_and_instructions_are_marked_for_models_that_take_marks() {
    let default = json!({"type": "default"});
    let long = json!({"type": "default", "ttl": "1h"});
    for (model, extra, mark) in [
        (CLAUDE, json!({}), Some(&default)),
        ("anthropic.claude-3-haiku-20240307-v1:0", json!({}), None),
        (NOVA, json!({}), None),
        (NOVA, json!({"cachePoint": default}), Some(&default)),
        (CLAUDE, json!({"cachePoint": long}), Some(&long)),
        (CLAUDE, json!({"cachePoint": null}), None),
    ] {
        let body = encoded(&ModelRequest {
            system: "Be brief.".into(),
            tools: Arc::new([tool("d", json!({}))]),
            ..asked(model, &extra)
        });
        let last = |list: &Value| list.as_array().unwrap().last().unwrap().get("cachePoint").cloned();
        assert_eq!(last(&body["system"]).as_ref(), mark, "{model} {extra}");
        assert_eq!(last(&body["toolConfig"]["tools"]).as_ref(), mark, "{model} {extra}");
        assert_eq!(body["additionalModelRequestFields"], Value::Null);
    }
}

#[test]
fn a_response_format_is_a_field_where_the_provider_enforces_it() {
    let schema = json!({"type": "object"});
    let body = encoded(&ModelRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "n".to_owned(),
            schema: schema.clone(),
            strict: true,
        },
        ..greeting()
    });
    let structure = json!({"jsonSchema": {"name": "n", "schema": schema.to_string()}});
    assert_eq!(
        body["outputConfig"],
        json!({"textFormat": {"type": "json_schema", "structure": structure}})
    );
}

#[test]
fn each_request_begins_with_the_bytes_of_the_one_before() {
    let mut history = vec![user("hi")];
    let mut before: Option<Vec<u8>> = None;
    for step in 0..3 {
        let id = format!("c{step}");
        let body = bytes_of(&ModelRequest {
            system: "Be brief.".into(),
            tools: Arc::new([tool("d", json!({}))]),
            messages: history.iter().cloned().map(Arc::new).collect(),
            ..asked(CLAUDE, &json!({"top_k": 3}))
        });
        let end = b"],\"inferenceConfig\":";
        let position = body.windows(end.len()).rposition(|window| window == end).unwrap();
        if let Some(before) = before.replace(body[..position].to_vec()) {
            assert!(body.starts_with(&before), "{}", String::from_utf8_lossy(&body));
        }
        history.push(owned("p", vec![call(&id, "{\"b\": 1,  \"a\": 1e2}")]));
        history.push(result(&id, vec![ContentPart::text("ok")]));
        history.push(user("steer"));
    }
}
