//! The choice of tools, tools that the provider executes itself, and files that it stores, as each
//! protocol sends them.

use std::sync::Arc;

use agent::ports::{ModelRequest, ToolSpec};
use models::{ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::model_server::{Captured, ModelServer, Reply};
use values::message::{ContentPart, DocumentPart, MediaSource, Role};
use values::model_parameters::ToolChoice;

use super::support::{
    self, ask, greeting, image, impatient, message, model_of, parameters, provider, request, result, user,
};

/// Returns what a request says of the choice of tools.
fn choice_in(kind: ProviderKind, body: &Value) -> &Value {
    match kind {
        ProviderKind::Gemini => &body["toolConfig"]["functionCallingConfig"],
        ProviderKind::Bedrock => &body["toolConfig"]["toolChoice"],
        _ => &body["tool_choice"],
    }
}

/// Returns the fields of an agent's `extra` that say it.
fn own_choice(kind: ProviderKind, choice: &Value) -> Value {
    match kind {
        ProviderKind::Gemini => json!({"toolConfig": {"functionCallingConfig": choice}}),
        ProviderKind::Bedrock => json!({"toolConfig": {"toolChoice": choice}}),
        _ => json!({"tool_choice": choice}),
    }
}

fn tools_in(kind: ProviderKind, body: &Value) -> &Value {
    match kind {
        ProviderKind::Bedrock => &body["toolConfig"]["tools"],
        _ => &body["tools"],
    }
}

fn tool() -> ToolSpec {
    support::tool(json!({"type": "object"}))
}

/// Asks a provider named `test`, whose answer is the body, and returns the request and the answer's
/// calls of its own tools.
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
    let function = json!({"type": "function", "function": {"name": "t"}});
    for (choice, expected) in [
        (
            ToolChoice::Auto,
            [json!("auto"), json!("auto"), Value::Null, Value::Null, Value::Null],
        ),
        (
            ToolChoice::None,
            [
                json!("none"),
                json!("none"),
                json!({"type": "none"}),
                json!({"mode": "NONE"}),
                // It has no such choice, and is offered no tool.
                Value::Null,
            ],
        ),
        (
            ToolChoice::Required,
            [
                json!("required"),
                json!("required"),
                json!({"type": "any"}),
                json!({"mode": "ANY"}),
                json!({"any": {}}),
            ],
        ),
        (
            ToolChoice::Tool("t".to_owned()),
            [
                function,
                json!({"type": "function", "name": "t"}),
                json!({"type": "tool", "name": "t"}),
                json!({"mode": "ANY", "allowedFunctionNames": ["t"]}),
                json!({"tool": {"name": "t"}}),
            ],
        ),
    ] {
        for (kind, expected) in ProviderKind::OVER_HTTP.into_iter().zip(expected) {
            let asked = |tools: &[ToolSpec]| ModelRequest {
                tools: tools.into(),
                tool_choice: choice.clone(),
                ..greeting()
            };
            let with = sent(kind, asked(&[tool()])).await;
            assert_eq!(choice_in(kind, &with), &expected, "{kind:?} {choice:?}");
            let is_offered = (kind, &choice) != (ProviderKind::Bedrock, &ToolChoice::None);
            assert_eq!(tools_in(kind, &with).is_array(), is_offered, "{kind:?} {choice:?}");
            let without = sent(kind, asked(&[])).await;
            let encoded = (choice_in(kind, &without), tools_in(kind, &without));
            let nothing = (&Value::Null, &Value::Null);
            assert_eq!(encoded, nothing, "no choice without tools: {kind:?} {choice:?}");
        }
    }
}

/// The protocols of Gemini and of Bedrock have no field for it.
#[tokio::test]
async fn one_call_at_most_has_its_form_in_each_protocol() {
    let disabled = |kind: &str| json!({"type": kind, "disable_parallel_tool_use": true});
    for (choice, tools, expected) in [
        (
            ToolChoice::Auto,
            vec![tool()],
            [json!(false), json!(false), disabled("auto")],
        ),
        (
            ToolChoice::Required,
            vec![tool()],
            [json!(false), json!(false), disabled("any")],
        ),
        (
            ToolChoice::None,
            vec![tool()],
            [json!(false), json!(false), json!({"type": "none"})],
        ),
        (ToolChoice::Auto, vec![], [Value::Null, Value::Null, Value::Null]),
    ] {
        let asked = |fields: Value| ModelRequest {
            tools: tools.clone().into(),
            tool_choice: choice.clone(),
            parameters: parameters(fields),
            ..greeting()
        };
        for (index, kind) in ProviderKind::OVER_HTTP.into_iter().enumerate() {
            let single = sent(kind, asked(json!({"single_tool_call": true}))).await;
            let several = sent(kind, asked(json!({"single_tool_call": false}))).await;
            let Some(expected) = expected.get(index) else {
                assert_eq!(single, several, "{kind:?} {choice:?}");
                continue;
            };
            let is_anthropic = kind == ProviderKind::Anthropic;
            let field = if is_anthropic {
                "tool_choice"
            } else {
                "parallel_tool_calls"
            };
            assert_eq!(&single[field], expected, "{kind:?} {choice:?}");
            assert_eq!(several, sent(kind, asked(json!({}))).await, "{kind:?} {choice:?}");
        }
    }
}

#[tokio::test]
async fn an_agent_s_own_field_says_what_the_choice_does_not() {
    let own = json!({"own": {"n": 1}});
    for kind in ProviderKind::OVER_HTTP {
        let asked = |choice: ToolChoice, extra: Value| ModelRequest {
            tools: [tool()].into(),
            tool_choice: choice,
            parameters: parameters(json!({"extra": extra})),
            ..greeting()
        };
        let free = sent(kind, asked(ToolChoice::Auto, own_choice(kind, &own))).await;
        assert_eq!(choice_in(kind, &free), &own, "{kind:?}");
        let forced = sent(kind, asked(ToolChoice::Required, own_choice(kind, &own))).await;
        let mut expected = sent(kind, asked(ToolChoice::Required, json!({}))).await;
        if kind == ProviderKind::Gemini {
            // Its choice has fields beside the one that forces, such as the names of tools.
            expected["toolConfig"]["functionCallingConfig"]["own"] = own["own"].clone();
        }
        assert_eq!(choice_in(kind, &forced), choice_in(kind, &expected), "{kind:?}");
    }
}

#[tokio::test]
async fn a_model_that_must_call_a_tool_does_not_think_where_that_is_refused() {
    let effort = json!({"reasoning_effort": "low"});
    let budget = json!({"type": "enabled", "budget_tokens": 2_000});
    let own = json!({"extra": {"thinking": budget}});
    let named = json!({"extra": {"additionalModelRequestFields": {"thinking": budget}}});
    let (adaptive, disabled) = (json!({"type": "adaptive"}), json!({"type": "disabled"}));
    for (kind, parameters, free) in [
        (ProviderKind::Anthropic, &effort, &adaptive),
        (ProviderKind::Anthropic, &own, &budget),
        (ProviderKind::Bedrock, &effort, &adaptive),
        (ProviderKind::Bedrock, &own, &budget),
        (ProviderKind::Bedrock, &named, &budget),
        (ProviderKind::Anthropic, &json!({}), &Value::Null),
        (ProviderKind::Bedrock, &json!({}), &Value::Null),
    ] {
        for (choice, tools, is_forced) in [
            (ToolChoice::Auto, vec![tool()], false),
            (ToolChoice::None, vec![tool()], false),
            (ToolChoice::Required, vec![tool()], true),
            (ToolChoice::Tool("t".to_owned()), vec![tool()], true),
            (ToolChoice::Required, vec![], false),
        ] {
            let asked = ModelRequest {
                model: "eu.anthropic.claude-x-v1:0".to_owned(),
                tools: tools.into(),
                tool_choice: choice.clone(),
                parameters: Arc::new(serde_json::from_value(parameters.clone()).unwrap()),
                ..greeting()
            };
            let body = sent(kind, asked).await;
            let thinking = match kind {
                ProviderKind::Bedrock => &body["additionalModelRequestFields"]["thinking"],
                _ => &body["thinking"],
            };
            let expected = if is_forced && !free.is_null() { &disabled } else { free };
            assert_eq!(thinking, expected, "{kind:?} {choice:?} {parameters}");
        }
    }
}

#[tokio::test]
async fn tools_of_the_provider_stand_beside_the_agent_s_and_reach_no_other_provider() {
    let search = json!({"type": "search", "name": "search", "max_uses": 3});
    let by_provider = json!({"test": [search], "other": [{"type": "elsewhere"}]});
    for kind in ProviderKind::OVER_HTTP {
        let own = sent(
            kind,
            ModelRequest {
                tools: [tool()].into(),
                ..greeting()
            },
        )
        .await;
        let own = &tools_in(kind, &own)[0];
        let asked = |tools: &[ToolSpec], extra: Value| ModelRequest {
            tools: tools.into(),
            provider_tools: Arc::new(serde_json::from_value(by_provider.clone()).unwrap()),
            parameters: parameters(json!({"extra": extra})),
            ..greeting()
        };
        let both = sent(kind, asked(&[tool()], json!({}))).await;
        assert_eq!(tools_in(kind, &both), &json!([own, search]), "{kind:?}");
        let alone = sent(kind, asked(&[], json!({}))).await;
        assert_eq!(tools_in(kind, &alone), &json!([search]), "{kind:?}");
        let further = json!({"type": "fetch"});
        let extra = sent(kind, asked(&[tool()], json!({"tools": [further]}))).await;
        if kind == ProviderKind::Bedrock {
            // A field that Converse does not know is the model's own.
            assert_eq!(tools_in(kind, &extra), &json!([own, search]));
            assert_eq!(extra["additionalModelRequestFields"], json!({"tools": [further]}));
        } else {
            assert_eq!(tools_in(kind, &extra), &json!([own, search, further]), "{kind:?}");
        }
        let forbidden = ModelRequest {
            tool_choice: ToolChoice::None,
            ..asked(&[tool()], json!({}))
        };
        let forbidden = sent(kind, forbidden).await;
        let is_offered = kind != ProviderKind::Bedrock;
        assert_eq!(tools_in(kind, &forbidden).is_array(), is_offered, "{kind:?}");
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
    let candidate = json!({"candidates": [{"finishReason": "STOP",
        "content": {"parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}, {"text": "hi"}]},
        "groundingMetadata": {"webSearchQueries": ["a", "b", "a"]}}]});
    let of_service = |id: &str| {
        let call = json!({"toolUseId": id, "name": "nova_grounding", "type": "server_tool_use", "input": {}});
        json!({"toolUse": call})
    };
    let found = json!({"toolResult": {"toolUseId": "a", "content": [], "type": "nova_grounding_result"}});
    let called = json!({"toolUse": {"toolUseId": "c", "name": "t", "input": {}}});
    let converse = json!({"stopReason": "tool_use", "output": {"message": {"role": "assistant",
        "content": [of_service("a"), found, of_service("b"), {"text": "hi"}, called]}}});
    for (kind, body, expected) in [
        (ProviderKind::Anthropic, blocks, json!({"web_search": 2, "look": 1})),
        (
            ProviderKind::OpenAiResponses,
            items,
            json!({"web_search": 2, "code_interpreter": 1}),
        ),
        (ProviderKind::OpenAiChat, executed, json!({"search": 1, "look": 1})),
        (
            ProviderKind::Gemini,
            candidate,
            json!({"google_search": 2, "code_execution": 1}),
        ),
        (ProviderKind::Bedrock, converse, json!({"nova_grounding": 2})),
    ] {
        assert_eq!(exchange(kind, greeting(), body).await.1, expected, "{kind:?}");
    }
}

#[tokio::test]
async fn a_call_of_our_tool_in_the_form_of_the_provider_s_own_is_not_lost() {
    let call = json!({"type": "server_tool_use", "id": "s", "name": "t", "input": {}});
    let found = json!({"type": "t_tool_result", "tool_use_id": "s", "content": []});
    let text = json!({"type": "text", "text": "hi"});
    let message = |content: Value| json!({"type": "message", "stop_reason": "end_turn", "content": content});
    let converse = json!({"stopReason": "end_turn", "output": {"message": {"role": "assistant", "content": [
        {"text": "hi"},
        {"toolUse": {"toolUseId": "s", "name": "t", "type": "server_tool_use", "input": {}}}]}}});
    for (kind, body, expected) in [
        (ProviderKind::Anthropic, message(json!([text, call])), Value::Null),
        (
            ProviderKind::Anthropic,
            message(json!([call, found, text])),
            json!({"t": 1}),
        ),
        (ProviderKind::Bedrock, converse, Value::Null),
    ] {
        let request = ModelRequest {
            tools: [tool()].into(),
            ..greeting()
        };
        assert_eq!(exchange(kind, request, body).await.1, expected, "{kind:?}");
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
    let image = |provider: &str| image(stored_at(provider));
    let words = "[The file \"a.pdf\" is stored at the provider other, and only its models can read it.]";
    let nameless = "[The file is stored at the provider other, and only its models can read it.]";
    let file = json!({"type": "file", "file": {"file_id": "file_1"}});
    let source = json!({"type": "file", "file_id": "file_1"});
    let said = |kind: &str, words: &str| json!({"type": kind, "text": words});
    let by_address = json!({"fileData": {"fileUri": "file_1"}});
    let unreadable = |what: &str, provider: &str| {
        let words = format!("[A {what} that is stored at the provider {provider}, which can't be opened here]");
        json!({"text": words})
    };
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
        (
            ProviderKind::Gemini,
            "/contents/0/parts",
            json!([by_address, by_address, {"text": words}, {"text": nameless}]),
        ),
        (
            ProviderKind::Bedrock,
            "/messages/0/content",
            json!([
                unreadable("file", "test"),
                unreadable("picture", "test"),
                {"text": words},
                {"text": nameless}
            ]),
        ),
    ] {
        let parts = vec![document("test"), image("test"), document("other"), image("other")];
        let body = sent(kind, request(vec![message(Role::User, parts)])).await;
        assert_eq!(body.pointer(pointer), Some(&expected), "{kind:?}");
    }
}

#[tokio::test]
async fn anthropic_gets_a_beta_header_for_requests_with_files() {
    let call =
        ContentPart::ToolCall(serde_json::from_value(json!({"id": "c", "name": "t", "arguments": "{}"})).unwrap());
    let in_result = vec![
        user("hi"),
        message(Role::Assistant, vec![call]),
        result("c", vec![document("test")]),
    ];
    for (messages, is_sent) in [
        (vec![message(Role::User, vec![document("test")])], true),
        (in_result, true),
        (vec![message(Role::User, vec![document("other")])], false),
        (vec![user("hi")], false),
    ] {
        let (captured, _) = exchange(ProviderKind::Anthropic, request(messages), json!({})).await;
        let header = captured.headers.get("anthropic-beta");
        assert_eq!(
            header.is_some_and(|value| value == "files-api-2025-04-14"),
            is_sent,
            "{header:?}"
        );
    }
}
