//! Every stored history is sendable to every configured model.
//!
//! Histories of answers of all protocols, as our own decoders read them, go to a model of each
//! protocol: the one that made them, another one of the same provider, and those of others.

mod answers;
mod order;
mod pictures;
mod targets;

use agent::ports::ModelRequest;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use test_support::model_server::{ModelServer, Reply};
use values::json::RawJson;
use values::message::{ContentPart, DocumentPart, Message, Role, ToolResult};
use values::session::find_history_fault;

use self::answers::{Answer, answers};
use self::targets::{Target, targets};
use super::support::{ask, base64, image, impatient, instruction, message, model_of, provider, request, says, user};

/// One step of a conversation.
#[derive(Debug, Clone)]
enum Step {
    Says(Vec<ContentPart>),
    Instructs,
    /// The answer with this index, and whether its results have media and are errors.
    Answers(usize, bool, bool),
    /// A completion that was interrupted.
    Interrupted,
}

fn picture() -> ContentPart {
    image(base64("image/png", "iVBORw0KGgo="))
}

fn file(media_type: &str) -> ContentPart {
    ContentPart::Document(DocumentPart {
        source: base64(media_type, "JVBERi0="),
        name: Some("a.bin".to_owned()),
    })
}

fn results(answer: &Message, has_media: bool, is_error: bool) -> Vec<Message> {
    let result = |id: &str, name: &str| ToolResult {
        call_id: id.to_owned(),
        name: name.to_owned(),
        content: if has_media {
            vec![ContentPart::text("seen"), picture(), file("application/pdf")]
        } else {
            vec![ContentPart::text("")]
        },
        is_error,
    };
    let calls = answer.tool_calls();
    let results = calls.map(|call| ContentPart::ToolResult(result(&call.id, &call.name)));
    // Some drivers store one message for each result.
    results.map(|result| message(Role::Tool, vec![result])).collect()
}

fn history(steps: &[Step], answers: &[Answer]) -> Vec<(Option<(String, String)>, Message)> {
    let mut history = Vec::new();
    for step in steps {
        match step {
            Step::Says(content) => history.push((None, message(Role::User, content.clone()))),
            Step::Instructs => history.push((None, instruction("Be brief."))),
            Step::Interrupted => history.push((None, says("I th "))),
            Step::Answers(index, has_media, is_error) => {
                let answer = &answers[index % answers.len()];
                let maker = Some((answer.provider.clone(), answer.model.clone()));
                history.push((maker, answer.message.clone()));
                let results = results(&answer.message, *has_media, *is_error);
                history.extend(results.into_iter().map(|result| (None, result)));
            }
        }
    }
    history
}

/// Sends a history to a target and checks the request.
#[track_caller]
fn check(target: &Target, history: &[(Option<(String, String)>, Message)]) {
    let messages: Vec<_> = history.iter().map(|(_, message)| message.clone()).collect();
    assert_eq!(find_history_fault(&messages), None);
    let text = String::from_utf8(target.encode(&ModelRequest {
        model: target.model.to_owned(),
        ..request(messages)
    }))
    .unwrap();
    let body: Value = serde_json::from_str(&text).unwrap();
    (target.check)(&body);
    for (maker, message) in history {
        let Some((provider, model)) = maker else { continue };
        if (provider.as_str(), model.as_str()) == (target.provider, target.model) {
            continue;
        }
        for mark in marks(message) {
            let escaped = Value::from(mark.as_str()).to_string();
            let is_sent = text.contains(&mark) || text.contains(escaped.trim_matches('"'));
            assert!(!is_sent, "{}/{} gets {mark} of {model}", target.provider, target.model);
        }
    }
}

/// Returns what only the maker of a message can read.
fn marks(message: &Message) -> Vec<String> {
    let of_part = |part: &ContentPart| match part {
        ContentPart::Text(part) => part.signature.clone().into_iter().collect(),
        ContentPart::Reasoning(part) => part.signature.iter().chain(&part.encrypted).cloned().collect(),
        ContentPart::ToolCall(call) => call.signature.clone().into_iter().collect(),
        ContentPart::Opaque(part) => vec![part.raw.as_str().to_owned()],
        _ => Vec::new(),
    };
    let fields = message.provider_fields.iter().flat_map(|owner| &owner.fields);
    let fields = fields.map(|(_, raw): &(String, RawJson)| raw.as_str().to_owned());
    let marks = message.content.iter().flat_map(of_part).chain(fields);
    // Shorter ones may be in a text by chance.
    marks.filter(|mark| mark.len() >= 8).collect()
}

#[test]
fn each_answer_can_be_followed_up_by_each_model() {
    let answers = answers();
    for target in targets() {
        for (index, answer) in answers.iter().enumerate() {
            for (has_media, is_error) in [(false, false), (true, false), (true, true)] {
                let asks = Step::Says(vec![ContentPart::text("Look."), picture(), file("application/pdf")]);
                let answered = Step::Answers(index, has_media, is_error);
                let more = Step::Says(vec![ContentPart::text("And now?")]);
                let label = format!("{} for {}/{}", answer.label, target.provider, target.model);
                for steps in [
                    vec![asks.clone(), answered.clone()],
                    vec![asks.clone(), answered.clone(), more.clone()],
                    vec![
                        asks.clone(),
                        answered.clone(),
                        more.clone(),
                        more.clone(),
                        answered.clone(),
                        Step::Instructs,
                    ],
                    vec![
                        Step::Instructs,
                        answered.clone(),
                        answered.clone(),
                        Step::Interrupted,
                        more,
                    ],
                ] {
                    let history = history(&steps, &answers);
                    let outcome = std::panic::catch_unwind(|| check(&target, &history));
                    assert!(outcome.is_ok(), "{label}: {steps:?}");
                }
            }
        }
    }
}

#[test]
fn what_only_a_model_can_read_goes_back_to_it() {
    let mut returned = std::collections::BTreeSet::new();
    for target in targets() {
        for answer in answers() {
            if (answer.provider.as_str(), answer.model.as_str()) != (target.provider, target.model) {
                continue;
            }
            let messages = [
                vec![user("hi"), answer.message.clone()],
                results(&answer.message, false, false),
            ]
            .concat();
            let body = target.encode(&ModelRequest {
                model: target.model.to_owned(),
                ..request(messages)
            });
            let text = String::from_utf8(body).unwrap();
            for mark in ["SIGNED-1", "SIGNED-2", "SEALED-1", "functions.t:0", "server_tool_use"] {
                if serde_json::to_string(&answer.message).unwrap().contains(mark) && text.contains(mark) {
                    returned.insert((target.provider, mark));
                }
            }
        }
    }
    let wanted = [
        ("anthropic", "SEALED-1"),
        ("anthropic", "SIGNED-1"),
        ("anthropic", "server_tool_use"),
        ("bedrock", "SEALED-1"),
        ("bedrock", "SIGNED-1"),
        ("bedrock", "server_tool_use"),
        ("gemini", "SIGNED-1"),
        ("gemini", "SIGNED-2"),
        ("responses", "SEALED-1"),
        ("router", "SIGNED-1"),
        ("router", "functions.t:0"),
    ];
    assert_eq!(returned, wanted.into());
}

fn step() -> impl Strategy<Value = Step> {
    let part = select(vec![
        ContentPart::text("a"),
        ContentPart::text("b\n"),
        picture(),
        file("application/pdf"),
        file("audio/mpeg"),
        file("application/zip"),
        file("text/plain"),
    ]);
    let says = prop::collection::vec(part, 1..4);
    prop_oneof![
        3 => says.prop_map(Step::Says),
        1 => Just(Step::Instructs),
        1 => Just(Step::Interrupted),
        4 => (any::<usize>(), any::<bool>(), any::<bool>()).prop_map(|(index, media, error)| Step::Answers(index, media, error)),
    ]
}

proptest! {
    #[test]
    fn every_history_can_be_sent_to_every_model(steps in prop::collection::vec(step(), 1..12)) {
        let answers = answers();
        let asks = Step::Says(vec![ContentPart::text("hi")]);
        let history = history(&[vec![asks], steps].concat(), &answers);
        for target in targets() {
            check(&target, &history);
        }
    }
}

/// A history of another service, which names no maker, with an id that few servers accept.
#[test]
fn an_imported_history_without_a_maker_can_be_sent() {
    let answer = json!({"role": "assistant", "content": [
        {"type": "reasoning", "text": "Hm.", "signature": "SIGNED-9-OF-NOBODY"},
        {"type": "tool_call", "id": "functions.t:0 ö", "name": "t", "arguments": "not json", "signature": "{\"more\": \"SIGNED-9\"}"},
        {"type": "opaque", "provider": "anthropic", "raw": "{\"type\": \"SIGNED-9\"}"},
    ]});
    let content = serde_json::from_value(answer["content"].clone()).unwrap();
    let answer = message(Role::Assistant, content);
    let mut history = vec![
        (None, user("hi")),
        (Some(("none".to_owned(), "none".to_owned())), answer.clone()),
    ];
    history.extend(results(&answer, true, false).into_iter().map(|result| (None, result)));
    for target in targets() {
        check(&target, &history);
    }
}

/// The client names the model, so that another model of the same provider gets nothing of it.
#[tokio::test]
async fn the_next_model_of_a_provider_gets_no_reasoning_and_no_odd_id() {
    let call = json!({"id": "functions.t:0", "type": "function", "function": {"name": "t", "arguments": "{}"}});
    let said = json!({"role": "assistant", "content": null, "reasoning": "SECRET", "tool_calls": [call]});
    let reply = json!({"choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]}).to_string();
    let server = ModelServer::start(vec![Reply::new(200, "application/json", reply); 3]).await;
    let model = model_of(provider("test", server.url("/v1")), &impatient(0));
    let asking = |name: &str, messages| ModelRequest {
        model: name.to_owned(),
        ..request(messages)
    };
    let response = ask(model.as_ref(), asking("first", vec![user("hi")]))
        .await
        .end
        .unwrap();
    let answer = Message {
        provider_fields: response.provider_fields.clone(),
        ..message(Role::Assistant, response.content)
    };
    let history = [vec![user("hi"), answer.clone()], results(&answer, false, false)].concat();
    for name in ["first", "second"] {
        ask(model.as_ref(), asking(name, history.clone())).await.end.unwrap();
    }
    let sent = server.captured();
    let (own, other) = (sent[1].json(), sent[2].json());
    assert_eq!(own["messages"][1]["reasoning"], "SECRET", "{own}");
    assert_eq!(own["messages"][2]["tool_call_id"], "functions.t:0", "{own}");
    assert_eq!(other["messages"][1].get("reasoning"), None, "{other}");
    let id = other["messages"][2]["tool_call_id"].as_str().unwrap();
    assert!(
        id.starts_with("call_") && other["messages"][1]["tool_calls"][0]["id"] == id,
        "{other}"
    );
}
