//! Replays the recorded exchanges through a real local server, as a stream, as one body and as a
//! list of chunks, and sends the answers back as they came.

use models::{ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::gemini_chunks::stream_text;
use test_support::model_server::{ModelServer, Reply};

use super::support::{encoded, read};
use crate::recordings::{Exchange, check, exchanges_where, expectations};
use crate::support::{answered, ask, greeting, impatient, model_of, provider, replayed, request};

/// Returns the exchanges of this protocol by file and number.
pub(crate) fn recorded() -> Vec<(String, Exchange)> {
    exchanges_where(|path| path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent"))
}

/// Returns the chunks of a recorded answer.
fn chunks(exchange: &Exchange) -> Vec<Value> {
    let body = &exchange.response.body;
    let events: Vec<_> = body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let texts = if events.is_empty() { vec![body.as_str()] } else { events };
    texts
        .into_iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

/// Folds chunks into one body: the parts in their order, and of all else the last.
fn folded(chunks: &[Value]) -> Value {
    let mut parts = Vec::new();
    let mut body = json!({});
    for chunk in chunks {
        let found = chunk["candidates"][0]["content"]["parts"].as_array();
        parts.extend(found.cloned().unwrap_or_default());
        for (name, value) in chunk.as_object().unwrap() {
            match (&mut body[name], value) {
                (Value::Object(known), Value::Object(fields)) => known.extend(fields.clone()),
                (known, value) => *known = value.clone(),
            }
        }
    }
    body["candidates"][0]["content"]["parts"] = Value::from(parts);
    body
}

/// Cuts the words of a body into pieces of seven characters, each in a chunk.
fn cut(body: &Value) -> Vec<Value> {
    let candidate = &body["candidates"][0];
    let mut chunks = Vec::new();
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        let chars: Vec<char> = part["text"].as_str().unwrap_or_default().chars().collect();
        let pieces = chars.chunks(7).map(|piece| {
            let mut part = part.clone();
            part["text"] = piece.iter().collect::<String>().into();
            part
        });
        let pieces: Vec<_> = if chars.is_empty() {
            vec![part.clone()]
        } else {
            pieces.collect()
        };
        chunks.extend(
            pieces
                .into_iter()
                .map(|part| json!({"candidates": [{"content": {"parts": [part]}}]})),
        );
    }
    let mut last = body.clone();
    last["candidates"][0]["content"] = json!({"parts": [{"text": ""}]});
    chunks.push(last);
    chunks
}

#[tokio::test]
async fn every_recording_gives_what_it_shows_in_each_form() {
    let expectations = expectations();
    for (label, exchange) in recorded() {
        let expected = &expectations[&label];
        let chunks = chunks(&exchange);
        let was_stream = exchange.response.content_type.starts_with("text/event-stream");
        let (stream, whole) = if was_stream {
            (exchange.response.body.clone(), folded(&chunks).to_string())
        } else {
            (stream_text(&cut(&chunks[0])), exchange.response.body.clone())
        };
        for (as_stream, content_type, body) in [
            (true, "text/event-stream", stream),
            (false, "application/json; charset=UTF-8", whole),
            (true, "application/json", Value::from(chunks.clone()).to_string()),
        ] {
            let label = format!("{label} {content_type} stream={as_stream}");
            let server = ModelServer::start(vec![Reply::new(200, content_type, body).in_pieces(97)]).await;
            let settings = ProviderSettings {
                kind: ProviderKind::Gemini,
                stream: as_stream,
                ..provider("test", server.url("/v1beta"))
            };
            let path = exchange.request.plain_path().replace(":streamGenerate", ":generate");
            let model = path.strip_prefix("/v1beta/models/").unwrap();
            let request = agent::ports::ModelRequest {
                model: model.strip_suffix(":generateContent").unwrap().to_owned(),
                ..greeting()
            };
            let outcome = ask(model_of(settings, &impatient(0)).as_ref(), request).await;
            let captured = server.captured();
            let sent = if as_stream {
                (path.replace(":generate", ":streamGenerate"), "alt=sse")
            } else {
                (path, "")
            };
            assert_eq!(
                (captured[0].path.as_str(), captured[0].query.as_str()),
                (sent.0.as_str(), sent.1)
            );
            let as_recorded = was_stream == as_stream && !content_type.ends_with("/json");
            check(&label, &outcome, expected, as_stream, as_recorded);
        }
    }
}

/// Returns the parts of an answer as they mean: words that belong together are joined.
fn meaning(parts: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    let is_plain = |part: &Value| part.get("text").is_some() && part.get("thoughtSignature").is_none();
    for part in parts {
        let mut part = part.clone();
        if let Some(call) = part.get_mut("functionCall") {
            call.as_object_mut().unwrap().remove("id");
        }
        match joined.last_mut() {
            _ if is_plain(&part) && part["text"] == "" => {}
            Some(last) if is_plain(last) && is_plain(&part) && last.get("thought") == part.get("thought") => {
                let text = last["text"].as_str().unwrap().to_owned();
                last["text"] = Value::from(text + part["text"].as_str().unwrap());
            }
            _ => joined.push(part),
        }
    }
    joined
}

#[test]
fn recorded_answers_go_back_unchanged() {
    for (label, exchange) in recorded() {
        let (_, response) = read(exchange.response.body.as_bytes());
        let answer = answered(&response.unwrap());
        let body = encoded(&request(replayed(answer)));
        let chunks = chunks(&exchange);
        let parts = chunks.iter().flat_map(|chunk| {
            let parts = chunk["candidates"][0]["content"]["parts"].as_array();
            parts.cloned().unwrap_or_default()
        });
        let wanted = meaning(&parts.collect::<Vec<_>>());
        if wanted.is_empty() {
            assert_eq!(body["contents"].as_array().unwrap().len(), 1, "{label}");
            continue;
        }
        let mut sent = meaning(body["contents"][1]["parts"].as_array().unwrap());
        for (sent, wanted) in sent.iter_mut().zip(&wanted) {
            // A model of no name is taken for a new one, which wants signatures.
            if wanted.get("functionCall").is_some() && wanted.get("thoughtSignature").is_none() {
                let substitute = sent.as_object_mut().unwrap().remove("thoughtSignature");
                assert_eq!(substitute, Some(json!("skip_thought_signature_validator")), "{label}");
            }
        }
        assert_eq!(sent, wanted, "{label}");
    }
}
