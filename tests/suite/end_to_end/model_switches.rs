//! A session goes on with another model, in the middle of a step and in the next turn, and goes
//! back: every request is one that its server accepts, and has nothing that only another model can
//! read.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::model_server::{Captured, ModelServer, Reply};
use test_support::wire_rules::{Order, check_chat, check_contents, check_converse, check_input, check_messages};

use super::waiting::{answer_to, open_calls};
use crate::support::mock_model::MockModel;
use crate::support::test_app::TestApp;

/// A protocol: the provider that speaks it, and the last part of its base address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Chat,
    Messages,
    Contents,
    Converse,
    Responses,
}

use Wire::{Chat, Contents, Converse, Messages, Responses};

const WIRES: [(Wire, &str, &str, &str); 5] = [
    (Chat, "router", "openai_chat", "/router/v1"),
    (Messages, "claude", "anthropic", "/claude/v1"),
    (Contents, "google", "gemini", "/google/v1beta"),
    (Converse, "aws", "bedrock", "/aws"),
    (Responses, "openai", "openai_responses", "/openai/v1"),
];

/// A model, and the rules of its server.
type Model = (Wire, &'static str, fn(&Value));

const MODELS: [Model; 11] = [
    (Chat, "moonshotai/kimi-k2", |body| {
        check_chat(body, Order::Joined, |_| true, false);
    }),
    (Chat, "anthropic/claude-sonnet-4.5", |body| {
        check_chat(body, Order::Joined, |id| is_plain(id, 64), true);
    }),
    (Chat, "mistralai/mistral-medium-3", |body| {
        check_chat(body, Order::Strict, |id| is_plain(id, 9) && id.len() == 9, true);
    }),
    (Messages, "claude-sonnet-4-5", check_messages),
    (Messages, "claude-opus-4-1", check_messages),
    (Contents, "gemini-3-pro", |body| check_contents(body, true)),
    (Contents, "gemini-2.5-flash", |body| check_contents(body, false)),
    (Converse, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", check_converse),
    (Converse, "amazon.nova-pro-v1:0", check_converse),
    (Responses, "gpt-5", |body| check_input(body, true)),
    (Responses, "o3-mini", |body| check_input(body, false)),
];

fn is_plain(id: &str, most: usize) -> bool {
    id.len() <= most && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Returns the model that a request asks. Some have it in their body, others in their path.
fn asked(request: &Captured) -> Model {
    let folder = request.path.split('/').nth(1).unwrap();
    let (wire, ..) = WIRES.into_iter().find(|(_, name, ..)| *name == folder).unwrap();
    let body = request.json();
    let is_asked = |model: &Model| {
        let in_path = model.1.split(':').next().unwrap();
        model.0 == wire && (body["model"] == model.1 || request.path.contains(in_path))
    };
    MODELS.into_iter().find(is_asked).unwrap()
}

/// A text that only one model can read. Long enough to be in no text by chance.
fn mark(model: &str, number: usize) -> String {
    let name: String = model.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("SIGNED{name}NUMBER{number}")
}

/// Returns whether a request ends with results of tools.
fn has_results(wire: Wire, body: &Value) -> bool {
    let list = ["messages", "contents", "input"];
    let list = list.iter().find_map(|name| body[name].as_array()).unwrap();
    let last = list.last().unwrap();
    let holds = |parts: &str, name: &str| {
        let parts = last[parts].as_array().into_iter().flatten();
        parts
            .into_iter()
            .any(|part| part.get(name).is_some() || part["type"] == name)
    };
    match wire {
        Chat => last["role"] == "tool",
        Messages => holds("content", "tool_result"),
        Contents => holds("parts", "functionResponse"),
        Converse => holds("content", "toolResult"),
        Responses => last["type"] == "function_call_output",
    }
}

/// Calls two tools with a signed thought, or answers with one.
fn reply(request: &Captured, number: usize) -> Reply {
    let (wire, model, _) = asked(request);
    let mark = mark(model, number);
    let calls = [("calculator", json!({"expression": "17 * 23"})), ("ask", json!({}))];
    let calls = if has_results(wire, &request.json()) {
        &[][..]
    } else {
        &calls
    };
    let id = |index: usize| match wire {
        Chat if model.contains("kimi") => format!("functions.{}:{}", calls[index].0, 2 * number + index),
        Chat if model.contains("mistral") => format!("mist{number:04}{index}"),
        _ => format!("call_{number}_{index}_{}", "x".repeat(30)),
    };
    let each = |form: &dyn Fn(String, &str, &Value) -> Value| {
        let calls = calls.iter().enumerate();
        calls
            .map(|(index, (name, arguments))| form(id(index), name, arguments))
            .collect::<Vec<_>>()
    };
    let ends = |open: &'static str, done: &'static str| if calls.is_empty() { done } else { open };
    let body = match wire {
        Chat => {
            let calls = each(&|id, name, arguments| {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                json!({"id": id, "type": "function", "function": function})
            });
            let mut message = json!({"role": "assistant", "content": "Words", "reasoning_content": mark,
                "reasoning_details": [{"type": "reasoning.text", "text": "Hm", "signature": mark}]});
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            json!({"choices": [{"index": 0, "message": message, "finish_reason": ends("tool_calls", "stop")}]})
        }
        Messages => {
            let calls = each(&|id, name, input| json!({"type": "tool_use", "id": id, "name": name, "input": input}));
            let thought = json!({"type": "thinking", "thinking": "Hm", "signature": mark});
            let content = [vec![thought, json!({"type": "text", "text": "Words"})], calls].concat();
            json!({"type": "message", "role": "assistant", "content": content,
                   "stop_reason": ends("tool_use", "end_turn"), "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
        Contents => {
            let mut parts = each(&|_, name, args| json!({"functionCall": {"name": name, "args": args}}));
            parts.insert(0, json!({"text": "Words"}));
            // The first call is signed, or the text of an answer.
            let signed = parts.len().min(2) - 1;
            parts[signed]["thoughtSignature"] = mark.into();
            parts.insert(0, json!({"text": "Hm", "thought": true}));
            json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
        }
        Converse => {
            let calls = each(&|id, name, input| json!({"toolUse": {"toolUseId": id, "name": name, "input": input}}));
            let thought = json!({"reasoningContent": {"reasoningText": {"text": "Hm", "signature": mark}}});
            let content = [vec![thought, json!({"text": "Words"})], calls].concat();
            json!({"output": {"message": {"role": "assistant", "content": content}},
                   "stopReason": ends("tool_use", "end_turn"),
                   "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}})
        }
        Responses => {
            let mut output = each(&|id, name, arguments| {
                json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
                       "arguments": arguments.to_string(), "status": "completed"})
            });
            if output.is_empty() {
                output.push(
                    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                                   "content": [{"type": "output_text", "text": "Words", "annotations": []}]}),
                );
            }
            output.insert(
                0,
                json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": [], "encrypted_content": mark}),
            );
            json!({"object": "response", "id": "resp_1", "status": "completed", "error": null, "output": output,
                   "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}})
        }
    };
    Reply::json(200, &body)
}

fn name(model: Model) -> String {
    let (_, provider, ..) = WIRES.into_iter().find(|(wire, ..)| *wire == model.0).unwrap();
    format!("{provider}/{}", model.1)
}

/// Returns the answers to the open calls of a run.
fn answers(run: &Value) -> Value {
    assert_eq!(run["status"], "waiting", "{run:#}");
    let calls = open_calls(run).into_iter();
    calls.map(|id| answer_to(run, id, json!({"result": "yes"}))).collect()
}

/// One model calls tools, the other one reads the results, calls tools of its own and answers; the
/// first one goes on.
async fn switch(app: &TestApp, maker: Model, other: Model) {
    let (maker, other) = (name(maker), name(other));
    let picture = json!({"kind": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="});
    let content = json!([{"type": "text", "text": "Look."}, {"type": "image", "source": picture}]);
    let mut run = app
        .run_with(json!({"agent": "a", "model": maker, "input": [{"role": "user", "content": content}]}))
        .await;
    let turns = [
        (&other, "Thanks."),
        (&other, "Again."),
        (&maker, "And again."),
        (&other, ""),
    ];
    for (model, input) in turns {
        let base = &run["session_id"];
        run = app
            .run_with(json!({"base_session_id": base, "model": model, "answers": answers(&run)}))
            .await;
        assert_eq!(run["status"], "completed", "{maker} to {other}: {run:#}");
        if !input.is_empty() {
            let base = &run["session_id"];
            let next = if input == "Thanks." { &maker } else { model };
            run = app
                .run_with(json!({"base_session_id": base, "model": next, "input": input}))
                .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_model_goes_on_after_every_other_one_and_back() {
    let mock = MockModel::echoing().await;
    let mut number = 0;
    let server = ModelServer::answering(move |request| {
        number += 1;
        reply(request, number)
    });
    let server = server.await;
    let mut settings = vec![("providers.aws.aws.region".to_owned(), "eu-central-1".to_owned())];
    for (_, provider, kind, base) in WIRES {
        settings.push((format!("providers.{provider}.kind"), kind.to_owned()));
        settings.push((format!("providers.{provider}.base_url"), server.url(base)));
    }
    let settings: Vec<_> = settings
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let database = TestDatabase::sqlite();
    let app = TestApp::start(database.url(), &mock, &settings).await;
    let agent = json!({"model": "mock/m", "system_prompt": "Be brief.", "tools": ["calculator"],
                       "client_tools": [{"name": "ask", "description": "Asks the user."}]});
    app.put_agent("a", agent).await;
    let mut captured = Vec::new();
    for maker in MODELS {
        for other in MODELS {
            switch(&app, maker, other).await;
            let requests = server.captured().split_off(captured.len());
            assert_eq!(requests.len(), 8, "{} to {}", maker.1, other.1);
            let mut returned = 0;
            for request in &requests {
                let (_, model, check) = asked(request);
                check(&request.json());
                let text = String::from_utf8(request.body.clone()).unwrap();
                for another in MODELS.iter().filter(|another| another.1 != model) {
                    let mark = mark(another.1, 0);
                    let mark = mark.trim_end_matches('0');
                    assert!(!text.contains(mark), "{model} gets {mark}: {text}");
                }
                let own = mark(model, 0);
                returned += usize::from(text.contains(own.trim_end_matches('0')));
            }
            // What a model has made returns to it, at least within a step.
            assert!(
                returned > 0 || maker.1 != other.1,
                "{} to {}: {requests:#?}",
                maker.1,
                other.1
            );
            captured.extend(requests);
        }
    }
    app.finish().await;
}
