//! The provider's own tools in histories: no call goes without its result, and no result without
//! its call.

use serde_json::{Value, json};
use values::message::{ContentPart, MessageTags};

use super::histories::{said, text, turns};
use crate::support::{call, opaque, owned, request, result, says, user};

fn opaque_block(block: &Value) -> ContentPart {
    opaque("p", &block.to_string())
}

fn search(id: &str) -> Value {
    json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "q"}})
}

fn found(id: &str) -> Value {
    json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})
}

#[test]
fn calls_and_results_that_have_lost_each_other_are_left_out() {
    let answer = |blocks: &[Value]| owned("p", blocks.iter().map(opaque_block).collect());
    for (messages, expected) in [
        // A pair stays, also where a pause stands between the two.
        (
            vec![answer(&[search("s1")]), answer(&[found("s1")]), user("and?")],
            vec![search("s1"), found("s1")],
        ),
        // A call that was cut off, and the caller has gone on.
        (
            vec![says("I look."), answer(&[search("s1")]), user("and?")],
            vec![text("I look.")],
        ),
        // A call that the provider may still answer.
        (
            vec![says("I look."), answer(&[search("s1")])],
            vec![text("I look."), search("s1")],
        ),
        // A result whose call is not sent.
        (
            vec![answer(&[found("s1")]), says("Found."), user("and?")],
            vec![text("Found.")],
        ),
        // A result that stands before its call is none of it.
        (
            vec![answer(&[found("s1"), search("s1")]), says("x"), user("and?")],
            vec![text("x")],
        ),
    ] {
        let asked = user("hi");
        let got = turns([vec![asked], messages.clone()].concat());
        assert_eq!(got[1], said("assistant", &expected), "{messages:?}");
    }
}

#[test]
fn a_tool_that_the_provider_s_code_calls_is_answered_in_its_midst() {
    let code = json!({"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {"code": "t()"}});
    let asked = owned("p", vec![opaque_block(&code), call("a", "{}")]);
    let messages = vec![user("hi"), asked, result("a", vec![ContentPart::text("ok")])];
    assert_eq!(
        turns(messages.clone())[1]["content"][0],
        code,
        "the answer is still open"
    );
    let done = json!({"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}});
    let messages = [messages, vec![owned("p", vec![opaque_block(&done)]), user("and?")]].concat();
    let got = turns(messages);
    assert_eq!((&got[1]["content"][0], &got[3]["content"]), (&code, &json!([done])));
}

#[test]
fn a_message_of_the_caller_comes_last_unless_the_completion_was_paused() {
    let trace = MessageTags {
        is_trace: true,
        ..MessageTags::default()
    };
    let answer = || owned("p", vec![ContentPart::text("Hm.")]);
    // Another model can't continue a paused message.
    let of_another = owned("q", vec![ContentPart::text("Hm.")]).with_tags(trace.clone());
    for (last, roles) in [
        (of_another, vec!["user", "assistant", "user"]),
        (answer(), vec!["user", "assistant", "user"]),
        (answer().with_tags(trace), vec!["user", "assistant"]),
    ] {
        let body = super::histories::encoded(&request(vec![user("hi"), last]));
        let turns = body["messages"].as_array().unwrap();
        assert_eq!(turns.iter().map(|turn| &turn["role"]).collect::<Vec<_>>(), roles);
    }
}
