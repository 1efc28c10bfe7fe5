//! Replays the recorded exchanges through a real local server, as a stream and as one body, and
//! sends the answers back as they came.

use agent::ports::ModelRequest;
use models::{ProviderKind, ProviderSettings};
use serde_json::{Map, Value, json};
use test_support::bedrock_frames::stream_bytes;
use test_support::model_server::{ModelServer, Reply};

use super::support::{encoded, read};
use crate::recordings::{Exchange, check, exchanges_where, expectations};
use crate::support::{answered, ask, greeting, impatient, model_of, provider, replayed, request, sevens};

/// Returns the exchanges of this protocol by file and number.
pub(crate) fn recorded() -> Vec<(String, Exchange)> {
    exchanges_where(|path| path.ends_with("/converse") || path.ends_with("/converse-stream"))
}

/// Returns the events of a recorded stream; knows nothing of the code under test.
fn events_of(mut bytes: &[u8]) -> Vec<Value> {
    let mut events = Vec::new();
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
    while !bytes.is_empty() {
        let (length, headers) = (number(bytes), number(&bytes[4..]));
        let text = String::from_utf8_lossy(&bytes[12..12 + headers]).into_owned();
        let kinds = [
            "messageStart",
            "contentBlockStart",
            "contentBlockDelta",
            "contentBlockStop",
            "messageStop",
            "metadata",
        ];
        let kind = kinds.into_iter().find(|kind| text.contains(kind)).unwrap();
        let payload: Value = serde_json::from_slice(&bytes[12 + headers..length - 4]).unwrap();
        events.push(json!({kind: payload}));
        bytes = &bytes[length..];
    }
    events
}

/// Folds events into one body.
fn folded(events: &[Value]) -> Value {
    let mut body = json!({});
    let mut blocks = Map::new();
    for event in events {
        let (kind, event) = event.as_object().unwrap().iter().next().unwrap();
        let block = blocks.entry(event["contentBlockIndex"].to_string());
        match kind.as_str() {
            "contentBlockStart" => {
                let mut start = event["start"].clone();
                if let Some(call) = start.get_mut("toolUse") {
                    call["input"] = Value::from("");
                }
                block.or_insert(start);
            }
            "contentBlockDelta" => {
                let block = block.or_insert(json!({}));
                for (pointer, position) in [
                    ("/text", "/text"),
                    ("/toolUse/input", "/toolUse/input"),
                    ("/reasoningContent/text", "/reasoningContent/reasoningText/text"),
                    (
                        "/reasoningContent/signature",
                        "/reasoningContent/reasoningText/signature",
                    ),
                    ("/reasoningContent/redactedContent", "/reasoningContent/redactedContent"),
                ] {
                    if let Some(piece) = event["delta"].pointer(pointer) {
                        let mut at = &mut *block;
                        for name in position.split('/').skip(1) {
                            at = &mut at[name];
                        }
                        *at = Value::from(at.as_str().unwrap_or_default().to_owned() + piece.as_str().unwrap());
                    }
                }
                if let Some(content) = event["delta"].get("toolResult") {
                    block["toolResult"]["content"] = content.clone();
                }
            }
            "messageStop" => body["stopReason"] = event["stopReason"].clone(),
            "metadata" => body["usage"] = event["usage"].clone(),
            _ => {}
        }
    }
    let blocks = blocks.into_iter().map(|(_, mut block)| {
        if let Some(input) = block.pointer_mut("/toolUse/input") {
            *input = serde_json::from_str(input.as_str().unwrap()).unwrap();
        }
        block
    });
    body["output"] = json!({"message": {"role": "assistant", "content": blocks.collect::<Vec<_>>()}});
    body
}

/// Cuts a recorded body into a stream.
fn cut(body: &Value) -> Vec<Value> {
    let mut events = vec![json!({"messageStart": {"role": "assistant"}})];
    let blocks = body["output"]["message"]["content"].as_array().unwrap();
    for (index, block) in blocks.iter().enumerate() {
        let delta = |delta: Value| json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}});
        let thought = &block["reasoningContent"]["reasoningText"];
        if let Some(text) = block["text"].as_str() {
            events.extend(sevens(text).into_iter().map(|piece| delta(json!({"text": piece}))));
        } else if let Some(text) = thought["text"].as_str() {
            let thoughts = sevens(text).into_iter().map(|piece| json!({"text": piece}));
            let thoughts = thoughts.chain([json!({"signature": thought["signature"]})]);
            events.extend(thoughts.map(|piece| delta(json!({"reasoningContent": piece}))));
        } else {
            let mut call = block["toolUse"].clone();
            let input = call.as_object_mut().unwrap().remove("input").unwrap();
            let start = json!({"toolUse": call});
            events.push(json!({"contentBlockStart": {"contentBlockIndex": index, "start": start}}));
            let pieces = sevens(&input.to_string()).into_iter();
            events.extend(pieces.map(|piece| delta(json!({"toolUse": {"input": piece}}))));
        }
        events.push(json!({"contentBlockStop": {"contentBlockIndex": index}}));
    }
    events.push(json!({"messageStop": {"stopReason": body["stopReason"]}}));
    events.push(json!({"metadata": {"usage": body["usage"]}}));
    events
}

#[tokio::test]
async fn every_recording_gives_what_it_shows_in_both_forms() {
    let expectations = expectations();
    for (label, exchange) in recorded() {
        let recorded = &exchange.response;
        let expected = &expectations[&label];
        let was_stream = recorded.content_type == "application/vnd.amazon.eventstream";
        for as_stream in [true, false] {
            let label = format!("{label} stream={as_stream}");
            let (content_type, body) = if recorded.status != 200 || was_stream == as_stream {
                (recorded.content_type.as_str(), recorded.bytes())
            } else if as_stream {
                let body = serde_json::from_str(&recorded.body).unwrap();
                ("application/vnd.amazon.eventstream", stream_bytes(&cut(&body)))
            } else {
                (
                    "application/json",
                    folded(&events_of(&recorded.bytes())).to_string().into_bytes(),
                )
            };
            let reply = Reply::new(recorded.status, content_type, body).in_pieces(97);
            let server = ModelServer::start(vec![reply]).await;
            let settings = ProviderSettings {
                kind: ProviderKind::Bedrock,
                stream: as_stream,
                ..provider("test", server.url(""))
            };
            let path = exchange.request.path.strip_prefix("/model/").unwrap();
            let (model, _) = path.split_once('/').unwrap();
            let request = ModelRequest {
                model: model.replace("%3A", ":"),
                ..greeting()
            };
            let outcome = ask(model_of(settings, &impatient(0)).as_ref(), request).await;
            let method = if as_stream { "converse-stream" } else { "converse" };
            assert_eq!(server.captured()[0].path, format!("/model/{model}/{method}"), "{label}");
            check(&label, &outcome, expected, as_stream, was_stream == as_stream);
        }
    }
}

#[test]
fn recorded_answers_go_back_unchanged() {
    for (label, exchange) in recorded() {
        let recorded = exchange.response;
        if recorded.status != 200 {
            continue;
        }
        let (_, response) = read(&recorded.bytes());
        let answer = answered(&response.unwrap());
        let body = encoded(&request(replayed(answer)));
        let mut whole: Value = match recorded.content_type.as_str() {
            "application/json" => serde_json::from_str(&recorded.body).unwrap(),
            _ => folded(&events_of(&recorded.bytes())),
        };
        // The protocol has this type in responses only.
        for block in whole["output"]["message"]["content"].as_array_mut().unwrap() {
            if block["toolUse"]["type"] == "tool_use" {
                block["toolUse"].as_object_mut().unwrap().remove("type");
            }
        }
        assert_eq!(body["messages"][1], whole["output"]["message"], "{label}");
    }
}
