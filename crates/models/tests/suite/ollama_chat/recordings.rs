//! Replays the recorded exchanges through a real local server, as a stream and as one body.

use models::{ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::model_server::{ModelServer, Reply};

use crate::recordings::{Exchange, check, exchanges_where, expectations};
use crate::support::{ask, greeting, impatient, model_of, provider};

/// Returns the exchanges of this protocol by file and number.
pub(crate) fn recorded() -> Vec<(String, Exchange)> {
    exchanges_where(|path| path.ends_with("/api/chat"))
}

/// Folds the lines of a stream into one body.
fn folded(stream: &str) -> Value {
    let (mut content, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    let mut body = Value::Null;
    for line in stream.lines() {
        body = serde_json::from_str(line).unwrap();
        let message = &body["message"];
        content.push_str(message["content"].as_str().unwrap_or_default());
        thinking.push_str(message["thinking"].as_str().unwrap_or_default());
        calls.extend(message["tool_calls"].as_array().cloned().unwrap_or_default());
    }
    body["message"] = json!({"role": "assistant", "content": content, "thinking": thinking, "tool_calls": calls});
    body
}

#[tokio::test]
async fn every_recording_gives_what_it_shows_in_both_forms() {
    let expectations = expectations();
    for (label, exchange) in recorded() {
        let stream = exchange.response.body.clone();
        let whole = folded(&stream).to_string();
        for (as_stream, content_type, body) in [
            (true, "application/x-ndjson", stream),
            (false, "application/json; charset=utf-8", whole),
        ] {
            let server = ModelServer::start(vec![Reply::new(200, content_type, body).in_pieces(97)]).await;
            let settings = ProviderSettings {
                kind: ProviderKind::OllamaChat,
                stream: as_stream,
                ..provider("test", server.url(""))
            };
            let outcome = ask(model_of(settings, &impatient(0)).as_ref(), greeting()).await;
            let captured = server.captured();
            assert_eq!(captured[0].path, exchange.request.plain_path(), "{label}");
            assert_eq!(captured[0].json()["stream"], as_stream, "{label}");
            let form = format!("{label} {content_type}");
            check(&form, &outcome, &expectations[&label], as_stream, as_stream);
        }
    }
}
