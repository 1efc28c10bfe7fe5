//! What each protocol makes of the choice of tools, of tools that the provider executes itself, and of files that it stores.

use std::sync::Arc;

use agent_runtime::agent::ports::{ModelRequest, ToolSpec};
use agent_runtime::message::{ContentPart, DocumentPart, ImagePart, MediaSource, Role};
use agent_runtime::model_parameters::ToolChoice;
use agent_runtime::models::{ProviderKind, ProviderSettings};
use serde_json::{Value, json};

use super::support::{ask, impatient, message, model_of, provider, request, result, user};
use crate::support::model_server::{Captured, ModelServer, Reply};

const KINDS: [ProviderKind; 3] = [
    ProviderKind::OpenAiChat,
    ProviderKind::OpenAiResponses,
    ProviderKind::Anthropic,
];

fn tool() -> ToolSpec {
    ToolSpec {
        name: "t".to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type": "object"}),
        idempotent: true,
        timeout: None,
    }
}

/// Asks a provider named `test`, whose answer is the body, and returns the request and the answer's calls of its own tools.
async fn exchange(kind: ProviderKind, request: ModelRequest, body: Value) -> (Captured, Value) {
    let server = ModelServer::start(vec![Reply::json(200, &body)]).await;
    let settings = ProviderSettings {
        kind,
        stream: false,
        ..provider("test", server.url("/v1"))
    };
    let outcome = ask(model_of(settings, &impatient(0)).as_ref(), request).await;
    let counted = outcome.end.map(|response| json!(response.provider_tool_calls));
    (server.captured().remove(0), counted.unwrap_or_default())
}

async fn sent(kind: ProviderKind, request: ModelRequest) -> Value {
    exchange(kind, request, json!({})).await.0.json()
}

#[tokio::test]
async fn a_choice_of_tools_has_its_form_in_each_protocol() {
    let named = || ToolChoice::Tool("t".to_owned());
    for (choice, expected) in [
        (ToolChoice::Auto, [json!("auto"), json!("auto"), Value::Null]),
        (
            ToolChoice::None,
            [json!("none"), json!("none"), json!({"type": "none"})],
        ),
        (
            ToolChoice::Required,
            [json!("required"), json!("required"), json!({"type": "any"})],
        ),
        (
            named(),
            [
                json!({"type": "function", "function": {"name": "t"}}),
                json!({"type": "function", "name": "t"}),
                json!({"type": "tool", "name": "t"}),
            ],
        ),
    ] {
        for (kind, expected) in KINDS.into_iter().zip(expected) {
            let asked = |tools: &[ToolSpec]| ModelRequest {
                tools: tools.into(),
                tool_choice: choice.clone(),
                ..request(vec![user("hi")])
            };
            assert_eq!(
                sent(kind, asked(&[tool()])).await["tool_choice"],
                expected,
                "{kind:?} {choice:?}"
            );
            let without = sent(kind, asked(&[])).await;
            assert_eq!(
                without["tool_choice"],
                Value::Null,
                "no choice without tools: {kind:?} {choice:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_agent_s_own_field_says_what_the_choice_does_not() {
    let parameters = |extra: Value| Arc::new(serde_json::from_value(json!({"extra": extra})).unwrap());
    for kind in KINDS {
        let own = json!({"own": 1});
        let asked = |choice: ToolChoice| ModelRequest {
            tools: [tool()].into(),
            tool_choice: choice,
            parameters: parameters(json!({"tool_choice": own})),
            ..request(vec![user("hi")])
        };
        assert_eq!(
            sent(kind, asked(ToolChoice::Auto)).await["tool_choice"],
            own,
            "{kind:?}"
        );
        assert_ne!(
            sent(kind, asked(ToolChoice::Required)).await["tool_choice"],
            own,
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn a_model_that_must_call_a_tool_is_not_told_to_think_where_that_is_refused() {
    for (choice, thinking) in [
        (ToolChoice::Auto, "adaptive"),
        (ToolChoice::None, "adaptive"),
        (ToolChoice::Required, "disabled"),
    ] {
        let asked = ModelRequest {
            tools: [tool()].into(),
            tool_choice: choice.clone(),
            parameters: Arc::new(serde_json::from_value(json!({"reasoning_effort": "low"})).unwrap()),
            ..request(vec![user("hi")])
        };
        let body = sent(ProviderKind::Anthropic, asked).await;
        assert_eq!(body["thinking"], json!({"type": thinking}), "{choice:?}");
    }
}

#[tokio::test]
async fn tools_of_the_provider_stand_beside_the_agent_s_and_reach_no_other_provider() {
    let search = json!({"type": "search", "name": "search", "max_uses": 3});
    let by_provider = json!({"test": [search], "other": [{"type": "elsewhere"}]});
    for kind in KINDS {
        let own = sent(
            kind,
            ModelRequest {
                tools: [tool()].into(),
                ..request(vec![user("hi")])
            },
        )
        .await;
        let asked = |tools: &[ToolSpec], extra: Value| ModelRequest {
            tools: tools.into(),
            provider_tools: Arc::new(serde_json::from_value(by_provider.clone()).unwrap()),
            parameters: Arc::new(serde_json::from_value(json!({"extra": extra})).unwrap()),
            ..request(vec![user("hi")])
        };
        let both = sent(kind, asked(&[tool()], json!({}))).await;
        assert_eq!(both["tools"], json!([own["tools"][0], search]), "{kind:?}");
        let alone = sent(kind, asked(&[], json!({}))).await;
        assert_eq!(alone["tools"], json!([search]), "{kind:?}");
        let further = json!({"type": "fetch"});
        let extra = sent(kind, asked(&[tool()], json!({"tools": [further]}))).await;
        assert_eq!(extra["tools"], json!([own["tools"][0], search, further]), "{kind:?}");
    }
}

#[tokio::test]
async fn calls_of_the_provider_s_tools_are_counted_by_name() {
    let search = |id: &str| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}});
    let found = |id: &str| json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []});
    let mcp = json!({"type": "mcp_tool_use", "id": "m", "name": "look", "server_name": "s", "input": {}});
    let text = json!({"type": "text", "text": "hi"});
    let blocks = json!({"type": "message", "stop_reason": "end_turn",
        "content": [search("a"), found("a"), mcp, search("b"), found("b"), text]});
    let items = json!({"object": "response", "status": "completed", "output": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "code_interpreter_call", "id": "ci_1", "status": "completed"},
        {"type": "web_search_call", "id": "ws_2", "status": "completed"},
        {"type": "computer_call", "id": "c_1", "call_id": "c"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}]});
    let executed = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi",
        "executed_tools": [{"index": 0, "type": "search"}, {"index": 1, "type": "function", "name": "look"}, {"index": 1, "type": "again"}]}}]});
    for (kind, body, expected) in [
        (ProviderKind::Anthropic, blocks, json!({"web_search": 2, "look": 1})),
        (
            ProviderKind::OpenAiResponses,
            items,
            json!({"web_search": 2, "code_interpreter": 1}),
        ),
        (ProviderKind::OpenAiChat, executed, json!({"search": 1, "look": 1})),
    ] {
        assert_eq!(
            exchange(kind, request(vec![user("hi")]), body).await.1,
            expected,
            "{kind:?}"
        );
    }
}

fn stored_at(provider: &str) -> MediaSource {
    MediaSource::ProviderFile {
        provider: provider.to_owned(),
        file_id: "file_1".to_owned(),
    }
}

fn document(provider: &str) -> ContentPart {
    ContentPart::Document(DocumentPart {
        source: stored_at(provider),
        name: Some("a.pdf".to_owned()),
    })
}

#[tokio::test]
async fn a_file_of_the_provider_is_named_to_it_and_described_to_others() {
    let image = |provider: &str| {
        ContentPart::Image(ImagePart {
            source: stored_at(provider),
            detail: None,
        })
    };
    let words = "[The file \"a.pdf\" is stored at the provider other, and only its models can read it.]";
    let nameless = "[The file is stored at the provider other, and only its models can read it.]";
    let file = json!({"type": "file", "file": {"file_id": "file_1"}});
    let source = json!({"type": "file", "file_id": "file_1"});
    let said = |kind: &str, words: &str| json!({"type": kind, "text": words});
    for (kind, pointer, expected) in [
        (
            ProviderKind::OpenAiChat,
            "/messages/0/content",
            json!([file, file, said("text", words), said("text", nameless)]),
        ),
        (
            ProviderKind::OpenAiResponses,
            "/input/0/content",
            json!([{"type": "input_file", "file_id": "file_1"}, {"type": "input_image", "file_id": "file_1", "detail": "auto"},
                said("input_text", words), said("input_text", nameless)]),
        ),
        (
            ProviderKind::Anthropic,
            "/messages/0/content",
            json!([{"type": "document", "source": source, "title": "a.pdf"}, {"type": "image", "source": source},
                said("text", words), said("text", nameless)]),
        ),
    ] {
        let parts = vec![document("test"), image("test"), document("other"), image("other")];
        let body = sent(kind, request(vec![message(Role::User, parts)])).await;
        assert_eq!(body.pointer(pointer), Some(&expected), "{kind:?}");
    }
}

#[tokio::test]
async fn anthropic_is_told_that_a_request_names_its_files() {
    let call =
        ContentPart::ToolCall(serde_json::from_value(json!({"id": "c", "name": "t", "arguments": "{}"})).unwrap());
    let in_result = vec![
        user("hi"),
        message(Role::Assistant, vec![call]),
        result("c", vec![document("test")]),
    ];
    for (messages, is_told) in [
        (vec![message(Role::User, vec![document("test")])], true),
        (in_result, true),
        (vec![message(Role::User, vec![document("other")])], false),
        (vec![user("hi")], false),
    ] {
        let (captured, _) = exchange(ProviderKind::Anthropic, request(messages), json!({})).await;
        let header = captured.headers.get("anthropic-beta");
        assert_eq!(
            header.is_some_and(|value| value == "files-api-2025-04-14"),
            is_told,
            "{header:?}"
        );
    }
}
