//! Builds clients, requests and messages for the tests of models, and collects answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent::ports::{Model, ModelCatalog as _, ModelError, ModelErrorClass, ModelEvent, ModelRequest};
use agent::state::ModelResponse;
use futures_util::StreamExt as _;
use models::{Catalog, ClientSettings, Decoder, ProviderKind, ProviderSettings, RetrySettings};
use proptest::sample::Index;
pub(super) use test_support::model_request::model_request as request;
use test_support::model_server::ModelServer;
use uuid::Uuid;
use values::clock::{Clock, SystemClock, Timestamp};
use values::ids::{IdSource, MessageId};
use values::json::RawJson;
use values::message::{ContentPart, Message, OpaquePart, ProviderFields, Role, ToolResult};

/// The UUIDs 1, 2, 3 and so on.
#[derive(Debug, Default)]
pub(super) struct Counted(AtomicU64);

impl IdSource for Counted {
    fn next_uuid(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1)
    }
}

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

/// Returns what a provider sent that only it can read.
pub(super) fn opaque(provider: &str, raw: &str) -> ContentPart {
    ContentPart::Opaque(OpaquePart {
        provider: provider.to_owned(),
        raw: RawJson::new(raw),
    })
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

/// Returns the class and the words of the error that an answer ended with.
#[track_caller]
pub(super) fn error(outcome: Decoded) -> (ModelErrorClass, String) {
    let error = outcome.1.unwrap_err();
    (error.class, error.message)
}

/// What came of a call.
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
                ModelEvent::AttemptFailed { usage } => {
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
