//! The parts of a request besides the conversation.

use std::sync::Arc;

use agent::ports::{ModelRequest, ToolSpec};
use serde_json::{Value, json};
use values::json::Object;
use values::message::{ContentPart, Role};
use values::model_parameters::{ModelParameters, ProviderTools};
use values::model_ref::ResponseFormat;

use super::support::{bytes_of, call, encoded};
use crate::support::{self, greeting, message, owned, request, result, user};

fn tool() -> ToolSpec {
    support::tool(json!({"type": "object", "properties": {"b": {}, "a": {}}, "additionalProperties": false}))
}

fn asked(model: &str, parameters: ModelParameters) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        max_output_tokens: parameters.max_output_tokens,
        parameters: Arc::new(parameters),
        ..greeting()
    }
}

#[test]
fn a_bare_request_has_only_required_fields() {
    assert_eq!(
        String::from_utf8(bytes_of(&greeting())).unwrap(),
        r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{}}"#
    );
}

#[test]
fn tools_have_their_whole_schema() {
    let body = encoded(&ModelRequest {
        tools: Arc::new([tool()]),
        ..greeting()
    });
    let function = json!({"name": "t", "description": "d", "parametersJsonSchema": tool().parameters});
    assert_eq!(body["tools"], json!([{"functionDeclarations": [function]}]));
}

#[test]
fn parameters_stand_in_the_configuration() {
    let parameters = ModelParameters {
        temperature: Some(0.5),
        top_p: Some(0.9),
        max_output_tokens: Some(20_000),
        stop: vec!["END".to_owned()],
        extra: json!({"generationConfig": {"topK": 7, "temperature": 1}, "safetySettings": [{"category": "C"}], "contents": []})
            .as_object()
            .unwrap()
            .clone(),
        ..ModelParameters::default()
    };
    let body = encoded(&asked("gemini-2.5-pro", parameters));
    assert_eq!(
        body["generationConfig"],
        json!({"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 20_000, "stopSequences": ["END"], "topK": 7})
    );
    assert_eq!(body["safetySettings"], json!([{"category": "C"}]));
    assert_eq!(body["contents"].as_array().unwrap().len(), 1, "nothing is replaced");
}

#[test]
fn efforts_are_budgets_for_older_models_and_levels_for_newer_ones() {
    for (model, effort, expected) in [
        ("gemini-2.5-flash", "none", json!({"thinkingBudget": 0})),
        (
            "gemini-2.5-flash",
            "low",
            json!({"includeThoughts": true, "thinkingBudget": 1_024}),
        ),
        (
            "gemini-2.5-flash",
            "high",
            json!({"includeThoughts": true, "thinkingBudget": 24_576}),
        ),
        (
            "models/gemini-2.5-pro",
            "medium",
            json!({"includeThoughts": true, "thinkingBudget": 8_192}),
        ),
        (
            "gemini-3-pro-preview",
            "low",
            json!({"includeThoughts": true, "thinkingLevel": "low"}),
        ),
        (
            "gemini-4",
            "new",
            json!({"includeThoughts": true, "thinkingLevel": "new"}),
        ),
    ] {
        let parameters = ModelParameters {
            reasoning_effort: Some(effort.to_owned()),
            ..ModelParameters::default()
        };
        let body = encoded(&asked(model, parameters));
        assert_eq!(body["generationConfig"]["thinkingConfig"], expected, "{model} {effort}");
    }
}

#[test]
fn a_response_format_is_a_field_or_a_prompt_where_the_model_refuses_the_field() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let format = |schema: &Value| ResponseFormat::JsonSchema {
        name: "n".to_owned(),
        schema: schema.clone(),
        strict: true,
    };
    let named = json!({"responseMimeType": "application/json", "responseJsonSchema": schema});
    let words = "Give the final answer as one JSON object, with nothing before or after it.";
    let with_schema = format!("{words} It fits this JSON Schema:\n{schema}");
    for (model, has_tools, format, config, instructions) in [
        ("gemini-2.5-pro", false, format(&schema), named.clone(), None),
        (
            "gemini-2.5-pro",
            true,
            format(&schema),
            json!({}),
            Some(with_schema.as_str()),
        ),
        ("gemini-3-pro-preview", true, format(&schema), named, None),
        (
            "gemini-3-pro-preview",
            false,
            ResponseFormat::JsonObject,
            json!({"responseMimeType": "application/json"}),
            None,
        ),
        (
            "gemini-2.0-flash",
            true,
            ResponseFormat::JsonObject,
            json!({}),
            Some(words),
        ),
        ("gemini-2.0-flash", true, ResponseFormat::Text, json!({}), None),
    ] {
        let body = encoded(&ModelRequest {
            response_format: format,
            tools: if has_tools { Arc::new([tool()]) } else { Arc::new([]) },
            ..asked(model, ModelParameters::default())
        });
        assert_eq!(body["generationConfig"], config, "{model} {has_tools}");
        assert_eq!(
            body["systemInstruction"]["parts"][0]["text"].as_str(),
            instructions,
            "{model} {has_tools}"
        );
    }
}

#[test]
fn tools_of_google_leave_no_room_for_a_shape_either() {
    let search = Object::from_iter([("googleSearch".to_owned(), json!({}))]);
    let of_extra = ModelParameters {
        extra: Object::from_iter([("tools".to_owned(), json!([search]))]),
        ..ModelParameters::default()
    };
    let named = json!({"responseMimeType": "application/json"});
    for (model, provider, parameters, config) in [
        ("gemini-2.5-pro", "p", ModelParameters::default(), json!({})),
        ("gemini-2.5-pro", "p", of_extra, json!({})),
        ("gemini-2.5-pro", "other", ModelParameters::default(), named.clone()),
        ("gemini-3-pro-preview", "p", ModelParameters::default(), named),
    ] {
        let has_extra = !parameters.extra.is_empty();
        let tools = ProviderTools::from([(provider.to_owned(), vec![search.clone()])]);
        let body = encoded(&ModelRequest {
            response_format: ResponseFormat::JsonObject,
            provider_tools: Arc::new(if has_extra { ProviderTools::new() } else { tools }),
            ..asked(model, parameters)
        });
        assert_eq!(body["generationConfig"], config, "{model} {provider} {has_extra}");
        let is_sent = body["systemInstruction"]["parts"][0]["text"].is_string();
        assert_eq!(is_sent, config == json!({}), "{model} {provider} {has_extra}");
    }
}

#[test]
fn each_request_begins_with_the_bytes_of_the_one_before() {
    let mut messages = vec![user("hi")];
    let mut before: Option<Vec<u8>> = None;
    for step in 0..3 {
        let id = format!("c{step}");
        let body = bytes_of(&ModelRequest {
            system: "Be brief.".into(),
            tools: Arc::new([tool()]),
            ..request(messages.clone())
        });
        let end = b"],\"generationConfig\":";
        let position = body.windows(end.len()).rposition(|window| window == end).unwrap();
        if let Some(before) = before.replace(body[..position].to_vec()) {
            assert!(body.starts_with(&before), "{}", String::from_utf8_lossy(&body));
        }
        messages.push(owned("p", vec![call(&id, "{\"b\": 1,  \"a\": 1e2}", Some("s"))]));
        messages.push(result(&id, vec![ContentPart::text("ok")]));
        messages.push(message(Role::User, vec![ContentPart::text("steer")]));
    }
}
