//! A request whose beginning was encoded for earlier requests has the bytes of one that is encoded
//! as a whole. So has its header.

use std::sync::Arc;

use agent::compilers::{CompilerConfig, Traces};
use agent::model_calls::request_bytes;
use agent::ports::ModelRequest;
use agent::state::{AgentContext, AgentState, MessageStore, Messages};
use chrono::DateTime;
use models::{ProviderKind, ProviderSettings};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use test_support::model_request::model_request;
use test_support::wires::{encode_request, settings};
use uuid::Uuid;
use values::ids::{AgentId, ExecutionId, MessageId, StepId, UuidV7Source};
use values::json::RawJson;
use values::message::{
    ContentPart, DocumentPart, ImagePart, MediaSource, Message, MessageTags, OpaquePart, ProviderFields, ReasoningPart,
    Role, TextPart, ToolCall, ToolResult,
};
use values::session::{History, PrefixChoice, RequestPrefix};

const PROVIDER: &str = "p";

fn words() -> impl Strategy<Value = String> {
    select(vec!["", " ", "a", "b\n", "\"€\\"]).prop_map(str::to_owned)
}

fn provider() -> impl Strategy<Value = String> {
    select(vec![PROVIDER, PROVIDER, "q"]).prop_map(str::to_owned)
}

fn id() -> impl Strategy<Value = String> {
    select(vec!["", "c1", "c2", "c 3", "an id that is longer than nine letters"]).prop_map(str::to_owned)
}

/// A mark, as some protocols add to a text or a call.
fn mark() -> impl Strategy<Value = Option<String>> {
    of(select(vec![r#"{"id":"m1"}"#, r#"{"type":"x","more":1e2}"#, "s"]).prop_map(str::to_owned))
}

fn media() -> impl Strategy<Value = ContentPart> {
    let url = select(vec!["https://h/a.png", "data:image/png;base64,AAAA", "s3://b/a.pdf"]);
    let source = prop_oneof![
        url.prop_map(|url| MediaSource::Url { url: url.to_owned() }),
        select(vec!["image/png", "text/plain", "application/pdf"]).prop_map(|media_type| MediaSource::Base64 {
            media_type: media_type.to_owned(),
            data: "aGk=".to_owned(),
        }),
        provider().prop_map(|provider| MediaSource::ProviderFile {
            provider,
            file_id: "f".to_owned(),
        }),
    ];
    let name = of(select(vec!["a.pdf", "b.txt"]).prop_map(str::to_owned));
    (source, name, any::<bool>()).prop_map(|(source, name, is_image)| {
        if is_image {
            ContentPart::Image(ImagePart { source, detail: name })
        } else {
            ContentPart::Document(DocumentPart { source, name })
        }
    })
}

/// A block of a provider: calls and results of its own tools, reasoning, and what it rejects if
/// nothing follows.
fn opaque() -> impl Strategy<Value = ContentPart> {
    let block = prop_oneof![
        select(vec!["s1", "s2"]).prop_map(|id| json!({"type": "server_tool_use", "id": id, "name": "search"})),
        select(vec!["s1", "s2"]).prop_map(|id| json!({"type": "web_search_tool_result", "tool_use_id": id})),
        Just(json!({"type": "reasoning", "id": "r", "encrypted_content": "e"})),
        Just(json!({"type": "computer_call", "call_id": "c1"})),
        Just(json!({"type": "computer_call_output", "call_id": "c1"})),
        Just(json!({"executableCode": {"code": "1"}})),
        Just(json!({"toolUse": {"name": "grounding"}})),
    ];
    (provider(), block).prop_map(|(provider, block)| {
        let raw = RawJson::new(block.to_string());
        ContentPart::Opaque(OpaquePart { provider, raw })
    })
}

fn plain_part() -> impl Strategy<Value = ContentPart> {
    prop_oneof![
        3 => (words(), mark()).prop_map(|(text, signature)| ContentPart::Text(TextPart {
            text,
            signature,
            ..TextPart::default()
        })),
        1 => words().prop_map(|text| ContentPart::Refusal { text }),
        1 => media(),
    ]
}

fn part() -> impl Strategy<Value = ContentPart> {
    let call = (id(), words(), mark()).prop_map(|(id, arguments, signature)| ToolCall {
        id,
        name: "t".to_owned(),
        arguments,
        signature,
    });
    let reasoning = (words(), mark(), of(words())).prop_map(|(text, signature, encrypted)| ReasoningPart {
        text,
        signature,
        encrypted,
        id: None,
    });
    let result = (id(), prop::collection::vec(plain_part(), 0..3), any::<bool>());
    let result = result.prop_map(|(call_id, content, is_error)| ToolResult {
        call_id,
        name: "t".to_owned(),
        content,
        is_error,
    });
    prop_oneof![
        3 => plain_part(),
        2 => opaque(),
        1 => call.prop_map(ContentPart::ToolCall),
        1 => reasoning.prop_map(ContentPart::Reasoning),
        1 => result.prop_map(ContentPart::ToolResult),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let role = select(vec![
        Role::System,
        Role::User,
        Role::User,
        Role::Assistant,
        Role::Assistant,
        Role::Tool,
    ]);
    let content = prop::collection::vec(part(), 0..4);
    let owner = of(provider().prop_map(|provider| ProviderFields {
        provider,
        model: Some("m".to_owned()),
        fields: vec![("reasoning_content".to_owned(), RawJson::new("\"r\""))],
    }));
    (any::<u128>(), role, content, owner).prop_map(|(id, role, content, provider_fields)| Message {
        provider_fields,
        ..Message::new(
            MessageId::from_uuid(Uuid::from_u128(id)),
            role,
            content,
            DateTime::UNIX_EPOCH,
        )
    })
}

/// The bodies of a request, in each protocol and in some of its dialects.
fn bodies(request: &ModelRequest) -> Vec<String> {
    let older = ModelRequest {
        model: "gemini-2.5-pro".to_owned(),
        ..request.clone()
    };
    let chat = |host| ProviderSettings {
        base_url: Some(format!("https://{host}")),
        ..settings(PROVIDER, ProviderKind::OpenAiChat)
    };
    let mut bodies = vec![
        encode_request(request, &chat("api.openai.com"), true),
        encode_request(request, &chat("api.mistral.ai"), true),
        encode_request(&older, &settings(PROVIDER, ProviderKind::Gemini), true),
    ];
    bodies.extend(ProviderKind::OVER_HTTP.map(|kind| encode_request(request, &settings(PROVIDER, kind), true)));
    bodies
        .into_iter()
        .map(|body| String::from_utf8(body).unwrap())
        .collect()
}

proptest! {
    #[test]
    fn the_beginning_that_was_encoded_before_has_the_same_bytes(
        messages in prop::collection::vec(message(), 0..14),
        mut ends in prop::collection::vec(0..14_usize, 1..5),
        system in words(),
    ) {
        let request = ModelRequest {
            system: system.into(),
            ..model_request(messages)
        };
        let whole = bodies(&request);
        for body in &whole {
            let valid = serde_json::from_str::<serde_json::Value>(body);
            prop_assert!(valid.is_ok(), "{}", body);
        }
        let all = request.messages.to_vec();
        let choice = PrefixChoice { sections: None, has_traces: false, summary: None };
        let mut prefix = Arc::new(RequestPrefix::new(choice, 0));
        ends.sort_unstable();
        for end in ends {
            let end = end.min(all.len());
            let known = prefix.messages().len();
            prefix = Arc::new(prefix.extended(all[known..end].iter().cloned(), end));
            for rest in [&all[end..], &[]] {
                let messages = Messages::after(Some(Arc::clone(&prefix)), rest.iter().cloned());
                let plain: Messages = messages.to_vec().into();
                let expected = bodies(&ModelRequest { messages: plain, ..request.clone() });
                for time in 0..2 {
                    let encoded = bodies(&ModelRequest { messages: messages.clone(), ..request.clone() });
                    prop_assert_eq!(&encoded, &expected, "{} of {}, time {}", end, all.len(), time);
                }
                if !rest.is_empty() {
                    prop_assert_eq!(&expected, &whole);
                }
            }
        }
    }
}

/// A history of so many turns, each a question and a final response.
fn turns(turns: usize) -> Vec<Arc<Message>> {
    let messages = (0..2 * turns).map(|index| {
        let is_answer = index % 2 == 1;
        let role = if is_answer { Role::Assistant } else { Role::User };
        let id = MessageId::generate(&UuidV7Source);
        let tags = MessageTags {
            step_id: is_answer.then(|| StepId::generate(&UuidV7Source)),
            ..MessageTags::default()
        };
        let message = Message::text(id, role, format!("words {index}"), DateTime::UNIX_EPOCH);
        Arc::new(message.with_tags(tags))
    });
    messages.collect()
}

/// Allocations grow with what is computed, and not with what is copied in one piece.
#[test]
fn a_turn_costs_what_it_adds() {
    let compiler = CompilerConfig::default().compiler(Traces::default());
    let now = DateTime::UNIX_EPOCH;
    let next_request = |history: History| {
        let context = AgentContext {
            store: MessageStore::new(history),
            ..AgentContext::default()
        };
        let state = AgentState::new(AgentId::generate(&UuidV7Source), now).restored(now, now, 1, context);
        let state = state.start_execution(ExecutionId::generate(&UuidV7Source), now);
        let messages = state.messages(&*compiler);
        let request = ModelRequest {
            messages: messages.clone(),
            ..model_request(Vec::new())
        };
        request_bytes(&request);
        bodies(&request);
        state
            .store()
            .history()
            .clone()
            .with_request_prefix(Arc::clone(messages.prefix().unwrap()))
    };
    let counts = [100, 10_000].map(|depth| {
        let history = turns(depth).into_iter().collect();
        let history = next_request(history).with_messages(turns(1));
        allocation_counter::measure(|| drop(next_request(history))).count_total
    });
    // Trees are some levels higher.
    assert!(counts[1] < counts[0] + counts[0] / 4, "{counts:?}");
}

/// A later message may have the result of a call of the provider's own tool. So nothing of the
/// beginning is retained, but it is not encoded in vain either.
#[test]
fn a_beginning_that_is_not_retained_is_encoded_once() {
    let mut all = turns(100);
    let call = json!({"type": "server_tool_use", "id": "s1", "name": "search"});
    Arc::make_mut(&mut all[1]).content.push(ContentPart::Opaque(OpaquePart {
        provider: PROVIDER.to_owned(),
        raw: RawJson::new(call.to_string()),
    }));
    let choice = PrefixChoice {
        sections: None,
        has_traces: false,
        summary: None,
    };
    let (beginning, rest) = all.split_at(199);
    let prefix = RequestPrefix::new(choice, 0).extended(beginning.iter().cloned(), 199);
    let settings = settings(PROVIDER, ProviderKind::Anthropic);
    let counts = [None, Some(Arc::new(prefix))].map(|prefix| {
        let rest = if prefix.is_some() { rest } else { &all };
        let request = ModelRequest {
            messages: Messages::after(prefix, rest.iter().cloned()),
            ..model_request(Vec::new())
        };
        let encode = || drop(encode_request(&request, &settings, true));
        allocation_counter::measure(encode).count_total
    });
    assert!(counts[1] < counts[0] + counts[0] / 4, "{counts:?}");
}
