//! Histories as the protocol's messages.

use serde_json::{Value, json};
use values::message::{ContentPart, Message, Role, ToolResult};

use super::support::encoded;
use crate::support::{
    call, cited, instruction, message, opaque, owned, redacted, refusal, request, result, says, thought, user,
};

fn messages(messages: Vec<Message>) -> Value {
    encoded(&request(messages))["messages"].clone()
}

fn turn(role: &str, content: &[Value]) -> Value {
    json!({"role": role, "content": content})
}

fn text(text: &str) -> Value {
    json!({"text": text})
}

fn tool_use(id: &str) -> Value {
    json!({"toolUse": {"toolUseId": id, "name": "t", "input": {}}})
}

fn tool_result(id: &str, text: &str) -> Value {
    json!({"toolResult": {"toolUseId": id, "content": [{"text": text}]}})
}

fn part(part: Value) -> ContentPart {
    serde_json::from_value(part).unwrap()
}

#[test]
fn turns_alternate_and_the_caller_has_the_first_and_the_last() {
    for (history, expected) in [
        (vec![], json!([turn("user", &[text("Continue.")])])),
        (
            vec![says("a")],
            json!([
                turn("user", &[text("Continue.")]),
                turn("assistant", &[text("a")]),
                turn("user", &[text("Continue.")])
            ]),
        ),
        (
            vec![
                user("a"),
                user("b"),
                says("c"),
                says("d"),
                user(" "),
                instruction("e"),
                user("f"),
            ],
            json!([
                turn("user", &[text("a"), text("b")]),
                turn("assistant", &[text("c"), text("d")]),
                turn("user", &[text("<system>\ne\n</system>"), text("f")]),
            ]),
        ),
    ] {
        assert_eq!(messages(history), expected);
    }
}

#[test]
fn results_follow_their_calls_at_once_and_hold_pictures() {
    let picture =
        part(json!({"type": "image", "source": {"kind": "base64", "media_type": "image/png", "data": "AAAA"}}));
    let failed = ToolResult {
        call_id: "b".to_owned(),
        name: "t".to_owned(),
        content: vec![ContentPart::text("no")],
        is_error: true,
    };
    let history = vec![
        user("hi"),
        message(Role::Assistant, vec![call("a", ""), call("b", "{}"), call("c", "{}")]),
        result("a", vec![ContentPart::text("x"), picture]),
        user("steer"),
        message(Role::Tool, vec![ContentPart::ToolResult(failed)]),
        result("c", vec![refusal("No.")]),
    ];
    let shown = json!({"image": {"format": "png", "source": {"bytes": "AAAA"}}});
    let expected = json!([
        turn("user", &[text("hi")]),
        turn("assistant", &[tool_use("a"), tool_use("b"), tool_use("c")]),
        turn(
            "user",
            &[
                json!({"toolResult": {"toolUseId": "a", "content": [text("x"), shown]}}),
                json!({"toolResult": {"toolUseId": "b", "content": [text("no")], "status": "error"}}),
                tool_result("c", "(no output)"),
                text("steer"),
            ]
        ),
    ]);
    assert_eq!(messages(history), expected);
}

#[test]
fn an_own_answer_goes_back_as_it_came_and_anothers_without_what_is_its_own() {
    let source = r#"{"title": "t"}"#;
    let parts = vec![
        thought("hm", Some("a+/=")),
        redacted("UmVk"),
        thought("unsigned", None),
        opaque("p", r#"{"guardContent": {"n": 1e2}}"#),
        cited("said", &[source]),
        call("x", "{}"),
        ContentPart::text("and"),
        call("y", "{}"),
    ];
    let results = ["x", "y"].map(|id| result(id, vec![ContentPart::text("r")]));
    let sent = |provider: &str| messages([vec![user("hi"), owned(provider, parts.clone())], results.to_vec()].concat());
    let own = [
        json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "a+/="}}}),
        json!({"reasoningContent": {"redactedContent": "UmVk"}}),
        json!({"guardContent": {"n": 1e2}}),
        json!({"citationsContent": {"content": [{"text": "said"}], "citations": [{"title": "t"}]}}),
        tool_use("x"),
        text("and"),
        tool_use("y"),
    ];
    assert_eq!(sent("p")[1], turn("assistant", &own));
    let foreign = [text("said"), text("and"), tool_use("x"), tool_use("y")];
    assert_eq!(sent("q")[1], turn("assistant", &foreign));
}

#[test]
fn an_answer_that_was_cut_loses_what_leads_nowhere() {
    for parts in [
        vec![thought("hm", Some("a")), redacted("b")],
        vec![ContentPart::text(" \n")],
        vec![opaque("p", "no JSON"), opaque("q", "{}")],
    ] {
        assert_eq!(
            messages(vec![user("a"), owned("p", parts), user("b")]),
            json!([turn("user", &[text("a"), text("b")])])
        );
    }
}

#[test]
fn files_have_names_of_their_own_and_never_stand_alone() {
    let file = |name: &str| {
        part(
            json!({"type": "document", "name": name, "source": {"kind": "base64", "media_type": "application/pdf", "data": "AA"}}),
        )
    };
    let sent = messages(vec![message(Role::User, vec![file("a.pdf"), file("a.pdf")])]);
    let document = |name: &str| json!({"document": {"format": "pdf", "name": name, "source": {"bytes": "AA"}}});
    assert_eq!(
        sent[0]["content"],
        json!([document("a pdf"), document("a pdf 2"), text("The file is attached.")])
    );
}

#[test]
fn arguments_that_are_no_object_are_wrapped_and_odd_ids_are_replaced() {
    let long = "n".repeat(65);
    let history = vec![
        user("hi"),
        message(
            Role::Assistant,
            vec![call("a b", "[1]"), call(&long, "{\"a\":"), call("", "{}")],
        ),
        result("a b", vec![]),
        result(&long, vec![]),
        result("", vec![]),
    ];
    let sent = messages(history);
    let calls: Vec<_> = (0..3).map(|n| sent[1]["content"][n]["toolUse"].clone()).collect();
    assert_eq!(calls[0]["input"], json!({"invalid_json": "[1]"}));
    assert_eq!(calls[1]["input"], json!({"invalid_json": "{\"a\":"}));
    for (n, call) in calls.iter().enumerate() {
        let id = call["toolUseId"].as_str().unwrap();
        let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
        assert!((1..=64).contains(&id.len()) && id.bytes().all(plain), "{id}");
        assert_eq!(sent[2]["content"][n]["toolResult"]["toolUseId"], id);
    }
}
