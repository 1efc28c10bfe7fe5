//! Builds clients, requests and messages for the tests of models, and collects answers.

use std::sync::Arc;

use agent::ports::{Model, ModelCatalog as _, ModelError, ModelErrorClass, ModelEvent, ModelRequest, ToolSpec};
use agent::state::ModelResponse;
use futures_util::StreamExt as _;
use models::{CapSettings, Catalog, ClientSettings, Decoder, ProviderKind, ProviderSettings, RetrySettings};
use proptest::sample::Index;
use serde_json::Value;
pub(super) use test_support::model_request::model_request as request;
use test_support::model_server::ModelServer;
use test_support::samples::DECODERS;
use test_support::wires::Counted;
use uuid::Uuid;
use values::clock::{Clock, SystemClock, Timestamp};
use values::ids::{IdSource, MessageId};
use values::json::RawJson;
use values::message::{
    Citation, ContentPart, ImagePart, MediaSource, Message, OpaquePart, ProviderFields, ReasoningPart, Role, TextPart,
    ToolCall, ToolResult,
};
use values::model_parameters::ModelParameters;
use values::usage::Usage;

/// Returns the id that a call gets which has none: the `n`th.
pub(super) fn generated_id(n: u128) -> String {
    format!("call_{}", Uuid::from_u128(n).simple())
}

/// Client settings whose retries do not wait.
pub(super) fn impatient(max_retries: u32) -> ClientSettings {
    ClientSettings {
        retries: RetrySettings {
            max_retries,
            base_delay: std::time::Duration::from_millis(1),
            max_delay: std::time::Duration::from_millis(1),
        },
        ..ClientSettings::default()
    }
}

pub(super) fn provider(name: &str, base_url: String) -> ProviderSettings {
    ProviderSettings {
        base_url: Some(base_url),
        api_key: Some("sk-test".into()),
        ..ProviderSettings::new(name, ProviderKind::OpenAiChat)
    }
}

pub(super) fn model_of(settings: ProviderSettings, client: &ClientSettings) -> Arc<dyn Model> {
    let ids: Arc<dyn IdSource> = Arc::new(Counted::default());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let name = format!("{}/any", settings.name).parse().unwrap();
    Catalog::new(vec![settings], client, ids, clock)
        .unwrap()
        .model(&name)
        .unwrap()
}

pub(super) fn client(server: &ModelServer, settings: &ClientSettings) -> Arc<dyn Model> {
    model_of(provider("test", server.url("/v1")), settings)
}

pub(super) fn message(role: Role, content: Vec<ContentPart>) -> Message {
    Message::new(MessageId::from_uuid(Uuid::nil()), role, content, Timestamp::UNIX_EPOCH)
}

pub(super) fn user(text: &str) -> Message {
    message(Role::User, vec![ContentPart::text(text)])
}

/// Returns the request in which a user says hi.
pub(super) fn greeting() -> ModelRequest {
    request(vec![user("hi")])
}

pub(super) fn says(text: &str) -> Message {
    message(Role::Assistant, vec![ContentPart::text(text)])
}

pub(super) fn instruction(text: &str) -> Message {
    message(Role::System, vec![ContentPart::text(text)])
}

/// Returns an answer in a history, with a result for each of its calls.
pub(super) fn replayed(answer: Message) -> Vec<Message> {
    let results: Vec<_> = answer
        .tool_calls()
        .map(|call| result(&call.id, vec![ContentPart::text("x")]))
        .collect();
    [vec![user("hi"), answer], results].concat()
}

pub(super) fn parameters(fields: Value) -> Arc<ModelParameters> {
    Arc::new(serde_json::from_value(fields).unwrap())
}

/// Returns the tool `t`.
pub(super) fn tool(parameters: Value) -> ToolSpec {
    ToolSpec {
        name: "t".to_owned(),
        description: "d".to_owned(),
        parameters,
        ..ToolSpec::default()
    }
}

pub(super) fn result(call_id: &str, content: Vec<ContentPart>) -> Message {
    let result = ToolResult {
        call_id: call_id.to_owned(),
        name: "t".to_owned(),
        content,
        is_error: false,
    };
    message(Role::Tool, vec![ContentPart::ToolResult(result)])
}

/// Returns the message that an answer becomes in the history. The model is the one of [`request`].
pub(super) fn answered(response: &ModelResponse) -> Message {
    let response = response.clone().made_by("p", "m");
    Message {
        provider_fields: response.provider_fields,
        ..message(Role::Assistant, response.content)
    }
}

/// Returns a message of the assistant as one that this model of the provider `p` made.
pub(super) fn made_by(mut message: Message, model: &str) -> Message {
    if message.role == Role::Assistant {
        let owner = || ProviderFields::owner("p");
        message.provider_fields.get_or_insert_with(owner).model = Some(model.to_owned());
    }
    message
}

/// Returns a message of the assistant that the provider owns, made by the model of [`request`].
pub(super) fn owned(provider: &str, content: Vec<ContentPart>) -> Message {
    Message {
        provider_fields: Some(ProviderFields {
            model: Some("m".to_owned()),
            ..ProviderFields::owner(provider)
        }),
        ..message(Role::Assistant, content)
    }
}

/// Returns a call of the tool `t`.
pub(super) fn call(id: &str, arguments: &str) -> ContentPart {
    named_call(id, "t", arguments)
}

pub(super) fn named_call(id: &str, name: &str, arguments: &str) -> ContentPart {
    ContentPart::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        signature: None,
    })
}

pub(super) fn thought(text: &str, signature: Option<&str>) -> ContentPart {
    ContentPart::Reasoning(ReasoningPart {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
        ..ReasoningPart::default()
    })
}

/// Returns reasoning that the provider has encrypted.
pub(super) fn redacted(data: &str) -> ContentPart {
    ContentPart::Reasoning(ReasoningPart {
        encrypted: Some(data.to_owned()),
        ..ReasoningPart::default()
    })
}

pub(super) fn refusal(text: &str) -> ContentPart {
    ContentPart::Refusal { text: text.to_owned() }
}

pub(super) fn cited(text: &str, citations: &[impl ToString]) -> ContentPart {
    let citations = citations
        .iter()
        .map(|citation| Citation(RawJson::new(citation.to_string())));
    ContentPart::Text(TextPart {
        text: text.to_owned(),
        citations: citations.collect(),
        signature: None,
    })
}

pub(super) fn image(source: MediaSource) -> ContentPart {
    ContentPart::Image(ImagePart { source, detail: None })
}

pub(super) fn at_url(url: &str) -> MediaSource {
    MediaSource::Url { url: url.to_owned() }
}

pub(super) fn base64(media_type: &str, data: &str) -> MediaSource {
    MediaSource::Base64 {
        media_type: media_type.to_owned(),
        data: data.to_owned(),
    }
}

/// Returns what a provider sent that only it can read.
pub(super) fn opaque(provider: &str, raw: &str) -> ContentPart {
    ContentPart::Opaque(OpaquePart {
        provider: provider.to_owned(),
        raw: RawJson::new(raw),
    })
}

pub(super) fn said(text: &str) -> ModelEvent {
    ModelEvent::TextDelta { text: text.to_owned() }
}

pub(super) fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens + output_tokens,
        ..Usage::default()
    }
}

/// The events of an answer, and its end.
pub(super) type Decoded = (Vec<ModelEvent>, Result<ModelResponse, ModelError>);

/// Decodes an answer that comes in these pieces.
pub(super) fn decode(mut decoder: Box<dyn Decoder>, chunks: &[&[u8]]) -> Decoded {
    let mut events = Vec::new();
    let pushed = chunks.iter().try_for_each(|chunk| decoder.push(chunk, &mut events));
    let end = match pushed.and_then(|()| decoder.finish(&mut events)) {
        Err(failure) => Err(failure.error),
        Ok(()) => match events.pop() {
            Some(ModelEvent::Completed(response)) => Ok(*response),
            other => panic!("an answer ended with {other:?}"),
        },
    };
    (events, end)
}

/// Decodes a response of a protocol that comes in these pieces.
pub(super) fn decoded(protocol: usize, kind: Option<&str>, chunks: &[&[u8]]) -> Decoded {
    decode(DECODERS[protocol].1(kind, CapSettings::default()), chunks)
}

/// Returns the class and the words of the error that an answer ended with.
#[track_caller]
pub(super) fn error(outcome: Decoded) -> (ModelErrorClass, String) {
    let error = outcome.1.unwrap_err();
    (error.class, error.message)
}

/// The outcome of a call.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) events: Vec<ModelEvent>,
    pub(super) end: Result<ModelResponse, ModelError>,
}

impl Outcome {
    pub(super) fn texts(&self) -> String {
        let text = |event: &ModelEvent| match event {
            ModelEvent::TextDelta { text } => Some(text.clone()),
            _ => None,
        };
        self.events.iter().filter_map(text).collect()
    }

    pub(super) fn reasoning(&self) -> String {
        let text = |event: &ModelEvent| match event {
            ModelEvent::ReasoningDelta { text } => Some(text.clone()),
            _ => None,
        };
        self.events.iter().filter_map(text).collect()
    }

    /// Returns the tokens that the provider has counted, as the events tell them: all, and those of
    /// failed attempts.
    pub(super) fn tokens(&self) -> (u64, u64) {
        let (mut of_attempt, mut failed) = (0, 0);
        for event in &self.events {
            match event {
                ModelEvent::Usage(usage) => of_attempt = usage.total_tokens,
                ModelEvent::AttemptFailed { usage, .. } => {
                    assert_eq!(usage.total_tokens, of_attempt);
                    failed += std::mem::take(&mut of_attempt);
                }
                _ => {}
            }
        }
        (failed + of_attempt, failed)
    }

    /// Returns the calls as the events tell them: id, name and arguments.
    pub(super) fn calls(&self) -> Vec<(String, String, String)> {
        let mut calls = Vec::new();
        for event in &self.events {
            match event {
                ModelEvent::ToolCallStarted { index, id, name } => {
                    assert_eq!(*index, calls.len(), "calls begin in order");
                    calls.push((id.clone(), name.clone(), String::new()));
                }
                ModelEvent::ToolCallDelta { index, arguments } => calls[*index].2.push_str(arguments),
                _ => {}
            }
        }
        calls
    }
}

/// Plays an answer to its end and checks what every answer must keep.
pub(super) async fn ask(model: &dyn Model, request: ModelRequest) -> Outcome {
    let mut items: Vec<_> = model.stream(request).collect().await;
    let end = match items.pop().expect("an answer has an end") {
        Ok(ModelEvent::Completed(response)) => Ok(*response),
        Ok(other) => panic!("an answer ended with {other:?}"),
        Err(error) => Err(error),
    };
    let events: Vec<_> = items
        .into_iter()
        .map(|item| item.expect("an error is the end"))
        .collect();
    let outcome = Outcome { events, end };
    if let Ok(response) = &outcome.end {
        let message = answered(response);
        assert_eq!(message.joined_text(), outcome.texts());
        let calls = message
            .tool_calls()
            .map(|call| (call.id.clone(), call.name.clone(), call.arguments.clone()));
        assert_eq!(calls.collect::<Vec<_>>(), outcome.calls());
    }
    outcome
}

/// Cuts a text into pieces of seven characters.
pub(super) fn sevens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(7).map(|chunk| chunk.iter().collect()).collect()
}

/// Cuts bytes into pieces.
pub(super) fn cut<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    ends.extend([0, bytes.len()]);
    ends.sort_unstable();
    ends.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

/// Replaces one byte and cuts off the end.
pub(super) fn damaged(mut bytes: Vec<u8>, position: Index, byte: u8, end: Index) -> Vec<u8> {
    let position = position.index(bytes.len());
    bytes[position] = byte;
    bytes.truncate(end.index(bytes.len() + 1));
    bytes
}
