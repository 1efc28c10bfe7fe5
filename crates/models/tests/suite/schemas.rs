//! The schemas of tools and of response formats, as each protocol sends them, and the arguments of
//! calls that come back.

use agent::ports::{ModelRequest, StructuredOutput, ToolSpec};
use models::{ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::model_server::{ModelServer, Reply};
use values::model_ref::ResponseFormat;

use super::support::{Outcome, ask, greeting, impatient, model_of, provider};
use crate::schema_rules::{assert_answer_schema, assert_tool_schema};

fn tool(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        parameters,
        ..ToolSpec::default()
    }
}

/// Tools as public servers have them.
fn tools() -> Vec<ToolSpec> {
    let schemas: Vec<(String, Value)> = serde_json::from_str(include_str!("schemas.json")).unwrap();
    let mut tools: Vec<_> = schemas.into_iter().map(|(name, schema)| tool(&name, schema)).collect();
    let either =
        ["x", "y"].map(|name| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}));
    tools.push(ToolSpec {
        description: "é".repeat(3_000),
        ..tool("wordy", json!({"type": "object", "oneOf": either}))
    });
    tools
}

async fn exchange(kind: ProviderKind, request: ModelRequest, body: Value) -> (Value, Outcome) {
    let server = ModelServer::start(vec![Reply::json(200, &body)]).await;
    let settings = ProviderSettings {
        kind,
        stream: false,
        structured_output: Some(StructuredOutput::Native),
        ..provider("test", server.url("/v1"))
    };
    let outcome = ask(model_of(settings, &impatient(0)).as_ref(), request).await;
    (server.captured().remove(0).json(), outcome)
}

async fn sent(kind: ProviderKind, request: ModelRequest) -> Value {
    exchange(kind, request, json!({})).await.0
}

/// Returns the name, the description and the schema of each tool of a request.
fn tools_in(kind: ProviderKind, body: &Value) -> Vec<(String, String, Value)> {
    let list = match kind {
        ProviderKind::Gemini => &body["tools"][0]["functionDeclarations"],
        ProviderKind::Bedrock => &body["toolConfig"]["tools"],
        _ => &body["tools"],
    };
    let tools = list.as_array().unwrap().iter().map(|tool| {
        let (tool, schema) = match kind {
            ProviderKind::OpenAiChat => (&tool["function"], &tool["function"]["parameters"]),
            ProviderKind::OpenAiResponses => (tool, &tool["parameters"]),
            ProviderKind::Gemini => (tool, &tool["parametersJsonSchema"]),
            ProviderKind::Bedrock => (&tool["toolSpec"], &tool["toolSpec"]["inputSchema"]["json"]),
            _ => (tool, &tool["input_schema"]),
        };
        let text = |name: &str| tool[name].as_str().unwrap_or_default().to_owned();
        (text("name"), text("description"), schema.clone())
    });
    tools.collect()
}

#[tokio::test]
async fn every_protocol_gets_schemas_that_it_accepts() {
    for kind in ProviderKind::OVER_HTTP {
        let asked = ModelRequest {
            tools: tools().into(),
            ..greeting()
        };
        let body = sent(kind, asked).await;
        let sent = tools_in(kind, &body);
        assert_eq!(sent.len(), tools().len());
        for (name, description, schema) in &sent {
            assert_tool_schema(kind, name, description, schema);
        }
        let tool = |wanted: &str| sent.iter().find(|(name, ..)| name == wanted).unwrap();
        let members = |wanted: &str| {
            let members = tool(wanted).2["properties"].as_object().unwrap().keys().cloned();
            members.collect::<Vec<_>>()
        };
        assert_eq!(
            tool("nothing").2,
            json!({"type": "object", "properties": {}}),
            "{kind:?}"
        );
        assert_eq!(
            tool("anything").2,
            json!({"type": "object", "properties": {}}),
            "{kind:?}"
        );
        assert_eq!(members("find_train"), ["from", "number"], "{kind:?}");
        assert_eq!(
            tool("find_train").1,
            "The tool find_train.\nGive one of these: from; number."
        );
        assert_eq!(members("post"), ["picture_url", "text"], "{kind:?}");
        assert_eq!(tool("post").2.get("required").unwrap_or(&json!([])), &json!([]));
        assert_eq!(members("both"), ["a", "b"], "{kind:?}");
        assert_eq!(tool("both").2["required"], json!(["a", "b"]));
        assert_eq!(
            members("rows"),
            ["_top", "_top_2", "gr__e", "order", "page_size_"],
            "{kind:?}"
        );
        assert_eq!(tool("rows").2["required"], json!(["_top_2"]));
        let order = &tool("rows").2["properties"]["order"];
        assert_eq!(
            (&order["properties"]["_by"]["type"], &order["required"]),
            (&json!("string"), &json!(["_by"]))
        );
        assert_eq!(members("conditional"), ["kind", "of_a", "of_b"], "{kind:?}");
        assert_eq!(
            tool("by_kind").2["properties"]["kind"],
            json!({"type": "string", "enum": ["car", "boat"]}),
            "{kind:?}"
        );
        assert_eq!(tool("by_kind").2["required"], json!(["kind"]));
        assert!(tool("wordy").1.ends_with("Give one of these: x; y."), "{kind:?}");
        let node = &tool("tree").2["properties"]["root"];
        let is_retained = !matches!(kind, ProviderKind::Gemini | ProviderKind::Bedrock);
        assert_eq!(node.get("$ref").is_some(), is_retained, "{kind:?}");
    }
}

#[tokio::test]
async fn references_are_replaced_below_every_keyword_with_schemas() {
    let word = json!({"$ref": "#/$defs/word"});
    let schema = json!({"type": "object", "$defs": {"word": {"type": "string"}}, "properties": {
        "old": {"type": "object", "dependencies": {"a": {"properties": {"b": word}}, "b": ["a"]}},
        "list": {"type": "array", "items": {"type": "integer"}, "additionalItems": word},
        "tuple": {"type": "array", "prefixItems": [word, {"type": "number"}]}}});
    let asked = ModelRequest {
        tools: vec![tool("t", schema)].into(),
        ..greeting()
    };
    let body = sent(ProviderKind::Bedrock, asked).await;
    let expected = json!({"type": "object", "properties": {
        "old": {"type": "object", "properties": {},
            "dependencies": {"a": {"properties": {"b": {"type": "string"}}}, "b": ["a"]}},
        "list": {"type": "array", "items": {"type": "integer"}, "additionalItems": {"type": "string"}},
        "tuple": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}});
    assert_eq!(tools_in(ProviderKind::Bedrock, &body)[0].2, expected);
}

#[tokio::test]
async fn members_that_need_others_name_them_as_their_schemas_do() {
    let schema = json!({"type": "object", "properties": {"$a": {"type": "string"}, "b": {"type": "string"}},
        "description": "Both or none.", "dependentRequired": {"b": ["$a"]}, "additionalProperties": false});
    let words = r#"dependentRequired: {"b":["_a"]}"#;
    for kind in ProviderKind::OVER_HTTP {
        let asked = ModelRequest {
            tools: vec![tool("t", schema.clone())].into(),
            ..greeting()
        };
        let body = sent(kind, asked).await;
        let (_, description, sent) = tools_in(kind, &body).remove(0);
        assert!(sent["properties"].get("_a").is_some(), "{kind:?}: {sent}");
        match kind {
            ProviderKind::Gemini => assert_eq!(sent["description"], format!("Both or none.\n{words}")),
            ProviderKind::Bedrock => {
                let lines: Vec<_> = description.lines().collect();
                assert!(lines[0] == "The tool t." && lines.len() == 3, "{description}");
                assert!(
                    lines.contains(&"Both or none.") && lines.contains(&words),
                    "{description}"
                );
            }
            _ => assert_eq!(sent["dependentRequired"], json!({"b": ["_a"]}), "{kind:?}"),
        }
    }
}

#[tokio::test]
async fn calls_get_the_names_of_members_back() {
    let written = r#"{"_top_2": 1e2, "_top": "$top", "order": {"_by" : "a \"_by\": b"}, "page_size_":5}"#;
    let expected = r#"{"$top": 1e2, "_top": "$top", "order": {"$by" : "a \"_by\": b"}, "page[size]":5}"#;
    let value: Value = serde_json::from_str(written).unwrap();
    for (kind, body) in [
        (
            ProviderKind::OpenAiChat,
            json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "rows", "arguments": written}}]}}]}),
        ),
        (
            ProviderKind::OpenAiResponses,
            json!({"object": "response", "status": "completed", "output": [
                {"type": "function_call", "id": "f", "call_id": "c", "name": "rows", "arguments": written, "status": "completed"}]}),
        ),
        (
            ProviderKind::Anthropic,
            json!({"type": "message", "role": "assistant", "stop_reason": "tool_use",
                "content": [{"type": "tool_use", "id": "c", "name": "rows", "input": value}]}),
        ),
        (
            ProviderKind::Gemini,
            json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"functionCall": {"name": "rows", "args": value}}]}}]}),
        ),
        (
            ProviderKind::Bedrock,
            json!({"stopReason": "tool_use", "output": {"message": {"role": "assistant",
                "content": [{"toolUse": {"toolUseId": "c", "name": "rows", "input": value}}]}}}),
        ),
    ] {
        let asked = ModelRequest {
            tools: tools().into(),
            ..greeting()
        };
        let (_, outcome) = exchange(kind, asked, body).await;
        let calls = outcome.calls();
        assert_eq!(calls.len(), 1, "{kind:?}");
        let given: Value = serde_json::from_str(&calls[0].2).unwrap();
        assert_eq!(given, serde_json::from_str::<Value>(expected).unwrap(), "{kind:?}");
        if kind == ProviderKind::OpenAiChat {
            assert_eq!(calls[0].2, expected, "the rest is verbatim");
        }
    }
}

fn format(schema: &Value, strict: bool) -> ResponseFormat {
    ResponseFormat::JsonSchema {
        name: "n".to_owned(),
        schema: schema.clone(),
        strict,
    }
}

/// Returns the response format of a request: its schema, and whether it is strict.
fn format_in(kind: ProviderKind, body: &Value) -> Option<(Value, bool)> {
    let (schema, strict) = match kind {
        ProviderKind::OpenAiChat => {
            let format = &body["response_format"]["json_schema"];
            (format["schema"].clone(), format["strict"] == true)
        }
        ProviderKind::OpenAiResponses => {
            let format = &body["text"]["format"];
            (format["schema"].clone(), format["strict"] == true)
        }
        ProviderKind::Gemini => (body["generationConfig"]["responseJsonSchema"].clone(), true),
        ProviderKind::Bedrock => {
            let text = &body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"];
            (serde_json::from_str(text.as_str()?).unwrap(), true)
        }
        _ => (body["output_config"]["format"]["schema"].clone(), true),
    };
    Some((schema, strict)).filter(|(schema, _)| !schema.is_null())
}

#[tokio::test]
async fn response_formats_are_reduced_for_every_protocol() {
    let rated = json!({"type": "object", "properties": {
        "stars": {"type": "integer", "minimum": 1, "maximum": 5},
        "words": {"type": "array", "items": {"type": "string", "minLength": 2}, "minItems": 2, "maxItems": 4},
        "place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
        "required": ["stars", "words", "place"]});
    let map = json!({"type": "object", "properties": {"counts": {"type": "object", "additionalProperties": {"type": "integer"}}},
        "required": ["counts"]});
    let optional = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let recursive = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
    let either = json!({"type": "object", "oneOf": [
        {"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]});
    for kind in ProviderKind::OVER_HTTP {
        for (name, schema) in [
            ("rated", &rated),
            ("map", &map),
            ("optional", &optional),
            ("recursive", &recursive),
            ("either", &either),
        ] {
            for strict in [true, false] {
                let asked = ModelRequest {
                    system: "Be brief.".into(),
                    response_format: format(schema, strict),
                    ..greeting()
                };
                let body = sent(kind, asked).await;
                let is_closed = matches!(kind, ProviderKind::Anthropic | ProviderKind::Bedrock);
                let Some((sent, is_strict)) = format_in(kind, &body) else {
                    // Only these two can't be expressed, and the prompt has them.
                    assert!(
                        is_closed && ["map", "recursive"].contains(&name),
                        "{kind:?} {name}: {body}"
                    );
                    let system = body["system"].to_string();
                    assert!(
                        system.contains("Be brief.") && system.contains("JSON Schema"),
                        "{system}"
                    );
                    continue;
                };
                let is_openai = matches!(kind, ProviderKind::OpenAiChat | ProviderKind::OpenAiResponses);
                let is_strict_name = ["rated", "recursive"].contains(&name);
                assert_eq!(is_strict, !is_openai || (strict && is_strict_name), "{kind:?} {name}");
                assert_answer_schema(kind, is_strict, &sent);
                if name == "rated" && is_closed {
                    let stars = json!({"type": "integer", "description": "maximum: 5, minimum: 1"});
                    assert_eq!(sent["properties"]["stars"], stars);
                    assert_eq!(sent["properties"]["place"]["additionalProperties"], false);
                    assert_eq!(sent["properties"]["words"]["description"], "maxItems: 4, minItems: 2");
                }
            }
        }
    }
}
