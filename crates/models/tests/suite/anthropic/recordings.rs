//! Recorded requests and answers: both are rebuilt from the neutral messages that they become.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::ports::{ModelRequest, ToolSpec};
use serde_json::{Value, json};
use values::message::{ContentPart, ImagePart, MediaSource, Role, ToolCall, ToolResult};
use values::model_parameters::ModelParameters;

use super::forms::{plain_of_stream, stream_of_plain};
use super::histories::{encoded, text, turns};
use super::support::read;
use crate::recordings::{MESSAGES, exchanges};
use crate::support::{answered, made_by, message, owned, replayed, request, thought};

/// Drops what means nothing (nulls, empty lists, false flags) and writes words one way.
fn meaning(turn: &Value) -> Value {
    let empty = [Value::Null, json!([]), json!(false)];
    let blocks = match &turn["content"] {
        Value::String(words) => vec![text(words)],
        blocks => blocks.as_array().unwrap().clone(),
    };
    let blocks = blocks.iter().map(|block| {
        let fields = block
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, value)| !empty.contains(value));
        fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Value>()
    });
    json!({"role": turn["role"], "content": blocks.collect::<Vec<_>>()})
}

/// Reads a block of a recorded request as the part that it must have come from.
fn neutral(block: &Value) -> ContentPart {
    let words = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str().unwrap() {
        "text" => ContentPart::text(words("text")),
        "image" => ContentPart::Image(ImagePart {
            source: MediaSource::Url {
                url: block["source"]["url"].as_str().unwrap().to_owned(),
            },
            detail: None,
        }),
        "thinking" => thought(&words("thinking"), Some(&words("signature"))),
        "tool_use" => ContentPart::ToolCall(ToolCall {
            id: words("id"),
            name: words("name"),
            arguments: block["input"].to_string(),
            signature: None,
        }),
        "tool_result" => ContentPart::ToolResult(ToolResult {
            call_id: words("tool_use_id"),
            name: "t".to_owned(),
            content: vec![ContentPart::text(words("content"))],
            is_error: block["is_error"] == true,
        }),
        other => panic!("{other}"),
    }
}

#[test]
fn recorded_requests_are_rebuilt_from_neutral_messages() {
    for (label, exchange) in exchanges(&MESSAGES) {
        let recorded = &exchange.request.body;
        let messages = recorded["messages"].as_array().unwrap();
        let neutral_turn = |turn: &Value| {
            let content = turn["content"].as_array().unwrap().iter().map(neutral).collect();
            match turn["role"].as_str().unwrap() {
                "user" => message(Role::User, content),
                _ => made_by(owned("p", content), recorded["model"].as_str().unwrap()),
            }
        };
        // Tools of the provider's own have no schema; they are no tools of ours.
        let tools = recorded["tools"].as_array().into_iter().flatten();
        let tools: Vec<_> = tools.filter(|tool| tool.get("input_schema").is_some()).collect();
        let specs = tools.iter().map(|tool| ToolSpec {
            description: tool["description"].as_str().unwrap().to_owned(),
            parameters: tool["input_schema"].clone(),
            ..super::histories::tool(tool["name"].as_str().unwrap())
        });
        let system = match &recorded["system"] {
            Value::Array(blocks) => &blocks[0]["text"],
            words => words,
        };
        let effort = recorded["output_config"]["effort"].as_str();
        let extra = recorded
            .get("thinking")
            .map(|thinking| ("thinking".to_owned(), thinking.clone()));
        let body = encoded(&ModelRequest {
            model: recorded["model"].as_str().unwrap().to_owned(),
            system: system.as_str().unwrap_or_default().into(),
            tools: specs.collect(),
            max_output_tokens: recorded["max_tokens"].as_u64(),
            parameters: Arc::new(ModelParameters {
                max_output_tokens: recorded["max_tokens"].as_u64(),
                reasoning_effort: effort.map(str::to_owned),
                extra: extra.into_iter().collect(),
                ..ModelParameters::default()
            }),
            ..request(messages.iter().map(neutral_turn).collect())
        });
        let got: Vec<_> = body["messages"].as_array().unwrap().iter().map(meaning).collect();
        let wanted: Vec<_> = messages.iter().map(meaning).collect();
        assert_eq!(got, wanted, "{label}");
        for field in ["model", "max_tokens", "output_config"] {
            assert_eq!(body[field], recorded[field], "{label} {field}");
        }
        if effort.is_none() {
            assert_eq!(body["thinking"], recorded["thinking"], "{label}");
        }
        assert_eq!(&body["system"][0]["text"], system, "{label}");
        let offered = body["tools"].as_array().into_iter().flatten();
        assert_eq!(offered.clone().count(), tools.len(), "{label}");
        for (got, wanted) in offered.zip(tools) {
            for field in ["name", "description", "input_schema"] {
                assert_eq!(got[field], wanted[field], "{label} {field}");
            }
        }
    }
}

#[test]
fn recorded_answers_go_back_unchanged() {
    let mut conversations = BTreeMap::<String, Value>::new();
    for (label, exchange) in exchanges(&MESSAGES) {
        let file = label.split('#').next().unwrap().to_owned();
        if let Some(answer) = conversations.get(&file) {
            // The recorded client has sent the answer back itself, if the conversation went on.
            let sent = exchange.request.body["messages"]
                .as_array()
                .unwrap()
                .iter()
                .map(meaning);
            let sent: Vec<_> = sent.filter(|turn| turn["role"] == "assistant").collect();
            assert!(sent.is_empty() || sent.last() == Some(answer), "{label}: {sent:?}");
        }
        let recorded = &exchange.response;
        if recorded.status != 200 {
            continue;
        }
        let (plain, streamed) = if recorded.content_type.starts_with("text/event-stream") {
            (plain_of_stream(&recorded.body), recorded.body.clone())
        } else {
            (recorded.body.clone(), stream_of_plain(&recorded.body))
        };
        let wanted: Value = serde_json::from_str(&plain).unwrap();
        let mut wanted = meaning(&json!({"role": "assistant", "content": wanted["content"]}));
        if let Some(last) = wanted["content"].as_array_mut().unwrap().last_mut()
            && let Some(words) = last["text"].as_str()
        {
            last["text"] = Value::from(words.trim_end());
        }
        for body in [plain, streamed] {
            let (_, response) = read(body.as_bytes());
            let answer = answered(&response.unwrap());
            let turns = turns(replayed(answer));
            assert_eq!(meaning(&turns[1]), wanted, "{label}");
        }
        conversations.insert(file, wanted);
    }
}
