//! Histories as the protocol's contents.

use agent::ports::ModelRequest;
use serde_json::{Value, json};
use values::message::{ContentPart, Message, Role, ToolResult};

use super::support::{call, encoded, signed};
use crate::support::{instruction, made_by, message, opaque, owned, request, result, says, thought, user};

const OLD: &str = "gemini-2.5-pro";
const NEW: &str = "gemini-3-pro-preview";

fn contents_of(model: &str, messages: Vec<Message>) -> Value {
    let body = encoded(&ModelRequest {
        model: model.to_owned(),
        ..request(messages)
    });
    body["contents"].clone()
}

fn contents(messages: Vec<Message>) -> Value {
    contents_of(OLD, messages)
}

fn turn(role: &str, parts: &[Value]) -> Value {
    json!({"role": role, "parts": parts})
}

fn text(text: &str) -> Value {
    json!({"text": text})
}

fn function_call(id: &str) -> Value {
    json!({"functionCall": {"id": id, "name": "t", "args": {}}})
}

fn response(id: &str, output: &str) -> Value {
    json!({"functionResponse": {"id": id, "name": "t", "response": {"output": output}}})
}

#[test]
fn turns_alternate_and_the_caller_has_the_first_and_the_last() {
    for (messages, expected) in [
        (vec![], json!([turn("user", &[text("Continue.")])])),
        (
            vec![says("a")],
            json!([
                turn("user", &[text("Continue.")]),
                turn("model", &[text("a")]),
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
                turn("model", &[text("c"), text("d")]),
                turn("user", &[text("<system>\ne\n</system>"), text("f")]),
            ]),
        ),
    ] {
        assert_eq!(contents(messages), expected);
    }
    let body = encoded(&ModelRequest {
        system: "Be brief.".into(),
        ..request(vec![instruction("And kind."), user("a")])
    });
    assert_eq!(
        body["systemInstruction"],
        json!({"parts": [text("Be brief."), text("And kind.")]})
    );
}

#[test]
fn results_follow_their_calls_at_once_and_in_one_turn() {
    let picture: ContentPart = serde_json::from_value(
        json!({"type": "image", "source": {"kind": "base64", "media_type": "image/png", "data": "AAAA"}}),
    )
    .unwrap();
    let failed = ToolResult {
        call_id: "b".to_owned(),
        name: "t".to_owned(),
        content: vec![ContentPart::text("no")],
        is_error: true,
    };
    let messages = vec![
        user("hi"),
        message(
            Role::Assistant,
            vec![call("a", "", None), call("b", "{}", None), call("c", "{}", None)],
        ),
        result("a", vec![picture]),
        user("steer"),
        message(Role::Tool, vec![ContentPart::ToolResult(failed)]),
        result("c", vec![ContentPart::text("1"), ContentPart::text("2")]),
    ];
    let expected = json!([
        turn("user", &[text("hi")]),
        turn("model", &[function_call("a"), function_call("b"), function_call("c")]),
        turn(
            "user",
            &[
                response("a", "The result follows as an attachment."),
                json!({"functionResponse": {"id": "b", "name": "t", "response": {"error": "no"}}}),
                response("c", "1\n2"),
                text("Attachments of the result of t (a):"),
                json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
                text("steer"),
            ]
        ),
    ]);
    assert_eq!(contents(messages), expected);
}

#[test]
fn an_own_answer_goes_back_as_it_came() {
    let code = r#"{"executableCode": {"code": "1e2"}, "thoughtSignature": "e"}"#;
    let outcome = r#"{"codeExecutionResult": {"output": "100"}}"#;
    let parts = vec![
        thought("hm", None),
        thought("", Some("a+/=")),
        opaque("p", code),
        opaque("p", outcome),
        ContentPart::text("b"),
        signed("", "c"),
        call("x", "{\"n\": 1.50}", Some("d")),
        call("y", "{}", None),
    ];
    let results = ["x", "y"].map(|id| result(id, vec![ContentPart::text("r")]));
    for model in [OLD, NEW] {
        let answer = made_by(owned("p", parts.clone()), model);
        let sent = contents_of(model, [vec![user("hi"), answer], results.to_vec()].concat());
        let wanted = [
            json!({"text": "hm", "thought": true}),
            json!({"text": "", "thought": true, "thoughtSignature": "a+/="}),
            serde_json::from_str(code).unwrap(),
            serde_json::from_str(outcome).unwrap(),
            text("b"),
            json!({"text": "", "thoughtSignature": "c"}),
            json!({"functionCall": {"id": "x", "name": "t", "args": {"n": 1.5}}, "thoughtSignature": "d"}),
            function_call("y"),
        ];
        assert_eq!(sent[1], turn("model", &wanted), "{model}");
    }
}

#[test]
fn the_answer_of_another_provider_loses_what_is_its_own() {
    let parts = vec![
        thought("hm", Some("a")),
        opaque("q", "{\"type\": \"x\"}"),
        signed("b", "c"),
        call("x", "{}", Some("d")),
        call("y", "{}", None),
    ];
    let results = ["x", "y"].map(|id| result(id, vec![ContentPart::text("r")]));
    let sent = |model: &str| {
        contents_of(
            model,
            [vec![user("hi"), owned("q", parts.clone())], results.to_vec()].concat(),
        )
    };
    assert_eq!(
        sent(OLD)[1],
        turn("model", &[text("b"), function_call("x"), function_call("y")])
    );
    let mut substituted = function_call("x");
    substituted["thoughtSignature"] = json!("skip_thought_signature_validator");
    assert_eq!(
        sent(NEW)[1],
        turn("model", &[text("b"), substituted, function_call("y")]),
        "the first call alone wants a signature"
    );
}

#[test]
fn an_answer_that_was_cut_loses_what_leads_nowhere() {
    for parts in [
        vec![thought("hm", Some("a"))],
        vec![thought("hm", None), opaque("p", "{\"executableCode\": {}}")],
        vec![ContentPart::text("")],
        vec![opaque("p", "no JSON")],
    ] {
        assert_eq!(
            contents(vec![user("a"), owned("p", parts), user("b")]),
            json!([turn("user", &[text("a"), text("b")])])
        );
    }
}

#[test]
fn arguments_that_are_no_object_are_wrapped_and_odd_names_and_ids_are_replaced() {
    let mut odd = call("same", "[1]", None);
    if let ContentPart::ToolCall(call) = &mut odd {
        call.name = "multi tool.use".to_owned();
    }
    let messages = vec![
        user("hi"),
        message(Role::Assistant, vec![odd]),
        result("same", vec![]),
        message(Role::Assistant, vec![call("same", "{\"a\":", None)]),
        result("same", vec![]),
        message(Role::Assistant, vec![call("", "{}", None)]),
        result("", vec![]),
    ];
    let sent = contents(messages);
    let called = |turn: usize| sent[turn]["parts"][0]["functionCall"].clone();
    assert_eq!(
        called(1),
        json!({"id": "same", "name": "multi_tool_use", "args": {"invalid_json": "[1]"}})
    );
    assert_eq!(called(3)["args"], json!({"invalid_json": "{\"a\":"}));
    let ids: Vec<_> = [1, 3, 5].map(|turn| called(turn)["id"].clone()).into();
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    for (turn, id) in [2, 4, 6].into_iter().zip(ids) {
        assert_eq!(sent[turn]["parts"][0]["functionResponse"]["id"], id);
    }
}
