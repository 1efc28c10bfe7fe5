//! The order of roles in chat completions.

use agent::ports::ModelRequest;
use models::{ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::wires::encode_request;
use values::message::{ContentPart, Message, Role};

use super::picture;
use crate::support::{call, instruction, message, request, result, says, user};

fn sent(host: &str, messages: Vec<Message>) -> Vec<Value> {
    let settings = ProviderSettings {
        base_url: Some(format!("https://{host}")),
        ..ProviderSettings::new("p", ProviderKind::OpenAiChat)
    };
    let request = ModelRequest {
        system: "Instructions".into(),
        ..request(messages)
    };
    let body: Value = serde_json::from_slice(&encode_request(&request, &settings, true)).unwrap();
    body["messages"].as_array().unwrap().clone()
}

fn roles(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect()
}

fn calls(ids: &[&str]) -> Message {
    let calls = ids.iter().map(|id| call(id, "{}"));
    message(Role::Assistant, calls.collect())
}

#[test]
fn neighbours_are_joined_and_instructions_are_at_the_beginning() {
    let history = vec![
        instruction("More"),
        user("a"),
        says("b"),
        calls(&["c1"]),
        result("c1", vec![ContentPart::text("r")]),
        instruction("Be brief."),
        user("c"),
        user("d"),
    ];
    let any = sent("api.openai.com", history.clone());
    let all = [
        "system",
        "system",
        "user",
        "assistant",
        "assistant",
        "tool",
        "system",
        "user",
        "user",
    ];
    assert_eq!(roles(&any), all);
    let call = json!({"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}});
    assert_eq!(
        sent("llm.example", history),
        [
            json!({"role": "system", "content": "Instructions\n\nMore"}),
            json!({"role": "user", "content": "a"}),
            json!({"role": "assistant", "content": "b", "tool_calls": [call]}),
            json!({"role": "tool", "content": "r", "tool_call_id": "c1"}),
            json!({"role": "user", "content": "<system>\nBe brief.\n</system>\n\nc\n\nd"}),
        ]
    );
}

#[test]
fn mistral_gets_no_message_of_the_user_right_after_a_tool() {
    let step = || {
        vec![
            user("a"),
            calls(&["c1", "c2"]),
            result("c1", vec![picture()]),
            result("c2", vec![]),
        ]
    };
    let mistral = |messages| sent("api.mistral.ai", messages);
    let ended = mistral(step());
    assert_eq!(
        roles(&ended),
        ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    );
    assert_eq!(ended[5], json!({"role": "assistant", "content": "I have the results."}));
    assert_eq!(ended[6]["content"][1]["type"], "image_url");
    // The next message of the user joins the attachments.
    let continued = mistral([step(), vec![user("b")]].concat());
    assert_eq!(roles(&continued), roles(&ended));
    assert_eq!(continued[6]["content"][2]["text"], "b");
    let plain = mistral(vec![user("a"), calls(&["c1"]), result("c1", vec![]), user("b")]);
    assert_eq!(
        roles(&plain),
        ["system", "user", "assistant", "tool", "assistant", "user"]
    );
    // Without a message of the user, nothing comes between.
    assert_eq!(
        roles(&mistral(vec![user("a"), calls(&["c1"]), result("c1", vec![])])).last(),
        Some(&"tool")
    );
    let assistant_only = mistral(vec![says("x")]);
    assert_eq!(roles(&assistant_only), ["system", "user", "assistant", "user"]);
}
