//! Replays every recorded exchange through a real local server, as a stream and as one body.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use models::{ProviderKind, ProviderSettings};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use test_support::model_server::{ModelServer, Reply};
use values::usage::Usage;

use super::anthropic::forms as anthropic_forms;
use super::openai_chat::forms as chat_forms;
use super::openai_responses::forms as responses_forms;
use super::support::{Outcome, ask, generated_id, greeting, impatient, model_of, provider};

#[derive(Debug, Deserialize)]
pub(super) struct Recording {
    pub(super) exchanges: Vec<Exchange>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Exchange {
    pub(super) request: RecordedRequest,
    pub(super) response: RecordedResponse,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct RecordedRequest {
    pub(super) path: String,
    pub(super) body: Value,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct RecordedResponse {
    pub(super) status: u16,
    pub(super) content_type: String,
    /// The text that came over the wire; of a binary stream, its base64.
    #[serde(deserialize_with = "text_or_base64")]
    pub(super) body: String,
}

fn text_or_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let body = Value::deserialize(deserializer)?;
    let text = body.as_str().or_else(|| body["base64"].as_str());
    Ok(text.unwrap_or_default().to_owned())
}

impl RecordedResponse {
    /// Returns the bytes that came over the wire.
    pub(super) fn bytes(&self) -> Vec<u8> {
        if self.content_type == "application/vnd.amazon.eventstream" {
            STANDARD.decode(&self.body).unwrap()
        } else {
            self.body.clone().into_bytes()
        }
    }
}

/// The meaning of an exchange, from its `expected.json`.
#[derive(Debug, Deserialize)]
pub(super) struct Expected {
    exchange: usize,
    text: String,
    reasoning: String,
    #[serde(default)]
    tool_calls: Vec<ExpectedCall>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    model: Option<String>,
    response_id: Option<String>,
    pub(super) error: Option<ExpectedError>,
}

#[derive(Debug, Deserialize)]
struct ExpectedCall {
    /// None where the provider gave none.
    id: Option<String>,
    name: String,
    arguments: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExpectedError {
    message: String,
    status: Option<u16>,
    class: String,
}

/// A protocol whose exchanges are replayed.
#[derive(Debug)]
pub(super) struct Wire {
    /// The end of its path.
    path: &'static str,
    pub(super) kind: ProviderKind,
    plain_of_stream: fn(&str) -> String,
    stream_of_plain: fn(&str) -> String,
}

pub(super) const CHAT: Wire = Wire {
    path: "/chat/completions",
    kind: ProviderKind::OpenAiChat,
    plain_of_stream: chat_forms::plain_of_stream,
    stream_of_plain: chat_forms::stream_of_plain,
};
pub(super) const MESSAGES: Wire = Wire {
    path: "/messages",
    kind: ProviderKind::Anthropic,
    plain_of_stream: anthropic_forms::plain_of_stream,
    stream_of_plain: anthropic_forms::stream_of_plain,
};

pub(super) const RESPONSES: Wire = Wire {
    path: "/responses",
    kind: ProviderKind::OpenAiResponses,
    plain_of_stream: responses_forms::plain_of_stream,
    stream_of_plain: responses_forms::stream_of_plain,
};

impl RecordedRequest {
    /// Returns the path without its query, which some clients add.
    pub(super) fn plain_path(&self) -> &str {
        self.path.split('?').next().unwrap()
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings")
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the exchanges of a protocol by file and number.
pub(super) fn exchanges(wire: &Wire) -> Vec<(String, Exchange)> {
    exchanges_where(|path| path.ends_with(wire.path))
}

/// Returns the exchanges whose path, without its query, is wanted.
pub(super) fn exchanges_where(wanted: impl Fn(&str) -> bool) -> Vec<(String, Exchange)> {
    // Some tests want them hundreds of times.
    static ALL: LazyLock<Vec<(String, Exchange)>> = LazyLock::new(all_exchanges);
    let wanted = ALL.iter().filter(|(_, exchange)| wanted(exchange.request.plain_path()));
    wanted.cloned().collect()
}

fn all_exchanges() -> Vec<(String, Exchange)> {
    let names = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "json") && name != "expected.json")
        .collect();
    names.sort();
    let mut found = Vec::new();
    for name in names {
        let recording: Recording = read(&name);
        let exchanges = recording.exchanges.into_iter().enumerate();
        found.extend(exchanges.map(|(number, exchange)| (format!("{name}#{number}"), exchange)));
    }
    found
}

/// Returns what the exchanges mean, by file and number.
pub(super) fn expectations() -> BTreeMap<String, Expected> {
    let expected: BTreeMap<String, Vec<Expected>> = read("expected.json");
    let rows = expected.into_iter().flat_map(|(file, rows)| {
        rows.into_iter()
            .map(move |row| (format!("{file}#{}", row.exchange), row))
    });
    rows.collect()
}

/// Replays an exchange in one form and compares the outcome with what is written down.
async fn replay(label: &str, wire: &Wire, exchange: &Exchange, expected: &Expected, as_stream: bool) {
    let recorded = &exchange.response;
    let is_stream = recorded.content_type.starts_with("text/event-stream");
    let plain_type = "application/json";
    let (content_type, body) = match (is_stream, as_stream) {
        _ if recorded.status != 200 => (recorded.content_type.as_str(), recorded.body.clone()),
        (true, true) | (false, false) => (recorded.content_type.as_str(), recorded.body.clone()),
        (true, false) => (plain_type, (wire.plain_of_stream)(&recorded.body)),
        (false, true) => ("text/event-stream", (wire.stream_of_plain)(&recorded.body)),
    };
    let server = ModelServer::start(vec![Reply::new(recorded.status, content_type, body).in_pieces(97)]).await;
    let base = exchange.request.plain_path().strip_suffix(wire.path).unwrap();
    let settings = ProviderSettings {
        kind: wire.kind,
        stream: as_stream,
        ..provider("test", server.url(base))
    };
    let model = model_of(settings, &impatient(0));
    let outcome = ask(model.as_ref(), greeting()).await;

    let captured = server.captured();
    assert_eq!(captured.len(), 1, "{label}");
    assert_eq!(captured[0].path, exchange.request.plain_path(), "{label}");
    assert_eq!(captured[0].json()["stream"], as_stream, "{label}");
    check(label, &outcome, expected, as_stream, is_stream == as_stream);
}

/// Compares an outcome with what is written down. In another form than the recorded one, the same
/// JSON may be spelt otherwise.
pub(super) fn check(label: &str, outcome: &Outcome, expected: &Expected, as_stream: bool, as_recorded: bool) {
    // A body with an error in it has no pieces to pass on before the error.
    if expected.error.is_none() || as_stream {
        assert_eq!(outcome.texts(), expected.text, "{label}");
        assert_eq!(outcome.reasoning(), expected.reasoning, "{label}");
    }
    match (&outcome.end, &expected.error) {
        (Ok(response), None) => {
            let spelt = |arguments: &str| match serde_json::from_str::<Value>(arguments) {
                Ok(value) if !as_recorded => value.to_string(),
                _ => arguments.to_owned(),
            };
            let mut nameless = 0;
            let calls = expected.tool_calls.iter().map(|call| {
                let id = call.id.clone().unwrap_or_else(|| {
                    nameless += 1;
                    generated_id(nameless)
                });
                (id, call.name.clone(), spelt(&call.arguments))
            });
            let calls: Vec<_> = calls.collect();
            let emitted = outcome.calls().into_iter();
            let emitted: Vec<_> = emitted
                .map(|(id, name, arguments)| (id, name, spelt(&arguments)))
                .collect();
            assert_eq!(emitted, calls, "{label}");
            assert_eq!(Some(response.usage), expected.usage, "{label}");
            assert_eq!(
                Some(String::from(response.finish_reason.clone())),
                expected.finish_reason,
                "{label}"
            );
            assert_eq!(response.model, expected.model, "{label}");
            assert_eq!(response.response_id, expected.response_id, "{label}");
        }
        (Err(error), Some(expected)) => {
            // One body without an answer is told apart from a stream without one.
            let stream_words = expected
                .message
                .replace("the response is not a chat completion", "the stream has no completion");
            let message = if as_stream { &stream_words } else { &expected.message };
            assert_eq!(&error.message, message, "{label}");
            assert_eq!(error.status, expected.status, "{label}");
            assert_eq!(error.class.code(), expected.class, "{label}");
            assert!(error.body.is_some() || as_stream, "{label}");
        }
        (end, expected) => panic!("{label}: {end:?} instead of {expected:?}"),
    }
}

#[tokio::test]
async fn every_recording_gives_what_it_shows_in_both_forms() {
    let mut expected = expectations();
    let others = super::gemini::recorded().into_iter().map(|(label, _)| label);
    for label in others.chain(super::bedrock::recorded().into_iter().map(|(label, _)| label)) {
        expected.remove(&label);
    }
    for wire in [CHAT, MESSAGES, RESPONSES] {
        for (label, exchange) in exchanges(&wire) {
            let expected = expected
                .remove(&label)
                .unwrap_or_else(|| panic!("{label} has no expectation"));
            for as_stream in [true, false] {
                let label = format!("{label} stream={as_stream}");
                replay(&label, &wire, &exchange, &expected, as_stream).await;
            }
        }
    }
    assert!(
        expected.is_empty(),
        "expectations without a recording: {:?}",
        expected.keys()
    );
}
