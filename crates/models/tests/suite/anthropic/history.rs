//! Histories on the wire: turns alternate, each part has its place, and what belongs to a provider
//! goes back to it alone.

use agent::ports::ModelRequest;
use serde_json::json;
use test_support::wires::encode_request;
use values::message::{ContentPart, Role, ToolCall, ToolResult};
use values::model_ref::ResponseFormat;

use super::histories::{encoded, said, text, turns};
use super::support::settings;
use crate::support::{
    base64, call, cited, greeting, image, instruction, message, opaque, owned, redacted, refusal, request, result,
    says, thought, user,
};

#[test]
fn turns_alternate_and_results_come_first() {
    let results = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
    let ok = || vec![ContentPart::text("ok")];
    let messages = vec![
        user("one"),
        user("two"),
        message(
            Role::Assistant,
            vec![ContentPart::text("Let me"), call("a", "{}"), call("b", "{}")],
        ),
        result("a", ok()),
        message(Role::User, vec![ContentPart::text("by the way")]),
        result("b", ok()),
        user("and"),
        instruction("Be brief. "),
        says("x"),
        says("y"),
    ];
    let tool_use = |id: &str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    assert_eq!(
        turns(messages),
        json!([
            said("user", &[text("one"), text("two")]),
            said("assistant", &[text("Let me"), tool_use("a"), tool_use("b")]),
            said(
                "user",
                &[
                    results("a"),
                    results("b"),
                    text("by the way"),
                    text("and"),
                    text("<system>\nBe brief.\n</system>")
                ]
            ),
            said("assistant", &[text("x"), text("y")]),
            said("user", &[text("Continue.")]),
        ])
    );
}

#[test]
fn the_caller_has_the_first_word_and_instructions_stand_above() {
    let body = encoded(&ModelRequest {
        system: "Above all.".into(),
        response_format: ResponseFormat::JsonObject,
        ..request(vec![instruction("So far: nothing."), says("Hello")])
    });
    let blocks = body["system"].as_array().unwrap();
    assert_eq!(blocks.len(), 3);
    assert_eq!(
        (&blocks[0]["text"], &blocks[0]["cache_control"]["type"]),
        (&json!("Above all."), &json!("ephemeral"))
    );
    assert_eq!(blocks[1], text("So far: nothing."));
    assert!(blocks[2]["text"].as_str().unwrap().contains("JSON"));
    assert_eq!(
        body["messages"],
        json!([
            said("user", &[text("Continue.")]),
            said("assistant", &[text("Hello")]),
            said("user", &[text("Continue.")])
        ]),
        "models refuse to go on from an answer"
    );
    let filler = json!([said("user", &[text("Continue.")])]);
    assert_eq!(turns(Vec::new()), filler);
    assert_eq!(turns(vec![user("  ")]), filler, "blank words are refused");
    let unsaid = encoded(&greeting());
    assert!(
        unsaid.get("system").is_none() && unsaid.get("tools").is_none(),
        "{unsaid}"
    );
}

#[test]
fn what_the_protocol_refuses_of_an_answer_is_left_out() {
    let foreign = opaque("q", "{}");
    for (content, expected) in [
        (vec![ContentPart::text("")], vec![]),
        (
            vec![
                ContentPart::text("a"),
                ContentPart::text(" \n"),
                ContentPart::text("b \n"),
            ],
            vec![text("a"), text("b")],
        ),
        (
            vec![ContentPart::text("a "), call("c", "")],
            vec![
                text("a "),
                json!({"type": "tool_use", "id": "c", "name": "t", "input": {}}),
            ],
        ),
        (vec![thought("unsigned", None), ContentPart::text("a")], vec![text("a")]),
        (vec![thought("cut off", Some("s"))], vec![]),
        (
            vec![ContentPart::text("a"), thought("cut off", Some("s"))],
            vec![text("a")],
        ),
        (
            vec![
                opaque("p", "{\"type\": \"x\"}"),
                opaque("p", "not JSON"),
                opaque("p", "[1]"),
                foreign,
            ],
            vec![json!({"type": "x"})],
        ),
        (vec![refusal("No.")], vec![text("No.")]),
        (vec![ContentPart::Unknown(json!({"type": "hologram"}))], vec![]),
    ] {
        let results: Vec<_> = content
            .iter()
            .filter(|part| matches!(part, ContentPart::ToolCall(_)))
            .map(|_| result("c", vec![]))
            .collect();
        let got = turns([vec![user("hi"), owned("p", content.clone())], results].concat());
        let got = got.as_array().unwrap().iter().find(|turn| turn["role"] == "assistant");
        let wanted = (!expected.is_empty()).then(|| said("assistant", &expected));
        assert_eq!(got, wanted.as_ref(), "{content:?}");
    }
}

#[test]
fn what_belongs_to_a_provider_goes_back_to_it_alone() {
    let citation = r#"{"type": "web_search_result_location",  "encrypted_index": "Eo8="}"#;
    let content = vec![
        thought("Let me see.", Some("c2ln")),
        redacted("ZGF0YQ=="),
        ContentPart::ToolCall(ToolCall {
            id: "functions.t:0".to_owned(),
            name: "t t".to_owned(),
            arguments: "{".to_owned(),
            signature: Some(r#"{"caller": {"type": "direct"}, "id": "other"}"#.to_owned()),
        }),
        cited("cited", &[citation, "broken"]),
    ];
    let history = |owner: &str| {
        request(vec![
            user("hi"),
            owned(owner, content.clone()),
            result("functions.t:0", vec![ContentPart::text("ok")]),
        ])
    };
    let body = encoded(&history("p"));
    let blocks = body["messages"][1]["content"].as_array().unwrap();
    assert_eq!(
        blocks[0],
        json!({"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"})
    );
    assert_eq!(blocks[1], json!({"type": "redacted_thinking", "data": "ZGF0YQ=="}));
    assert_eq!(
        (&blocks[2]["name"], &blocks[2]["input"], &blocks[2]["caller"]),
        (&json!("t_t"), &json!({"invalid_json": "{"}), &json!({"type": "direct"}))
    );
    assert_eq!(blocks[2]["id"], body["messages"][2]["content"][0]["tool_use_id"]);
    assert!(
        !blocks[2]["id"].as_str().unwrap().contains(['.', ':']),
        "{}",
        blocks[2]["id"]
    );
    assert_eq!(blocks[3]["citations"].as_array().unwrap().len(), 1);
    let bytes = String::from_utf8(encode_request(&history("p"), &settings(), true)).unwrap();
    assert!(bytes.contains(citation), "verbatim: {bytes}");

    let blocks = encoded(&history("q"))["messages"][1]["content"].clone();
    let kinds: Vec<_> = blocks.as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "tool_use"], "a foreign answer has its calls last");
    assert_eq!((blocks[0].get("citations"), blocks[1].get("caller")), (None, None));
}

#[test]
fn results_are_words_or_blocks_and_errors_are_marked() {
    let image = image(base64("image/png", "AAAA"));
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let refusal = refusal("No.");
    for (content, is_error, expected) in [
        (vec![], false, json!({"content": ""})),
        (
            vec![ContentPart::text(" ")],
            true,
            json!({"content": "The tool failed without a message.", "is_error": true}),
        ),
        (
            vec![ContentPart::text("a"), ContentPart::text("")],
            true,
            json!({"content": "a\n", "is_error": true}),
        ),
        (
            vec![ContentPart::text(" "), image.clone(), ContentPart::text("b")],
            false,
            json!({"content": [picture, text("b")]}),
        ),
        (vec![refusal, image], false, json!({"content": [picture]})),
    ] {
        let answer = ContentPart::ToolResult(ToolResult {
            call_id: "a".to_owned(),
            name: "t".to_owned(),
            content,
            is_error,
        });
        let mut wanted = expected.clone();
        (wanted["type"], wanted["tool_use_id"]) = (json!("tool_result"), json!("a"));
        let asked = message(Role::Assistant, vec![call("a", "{}")]);
        let got = turns(vec![user("hi"), asked, message(Role::Tool, vec![answer])]);
        assert_eq!(got[2]["content"], json!([wanted]));
    }
}
