//! The way of an answer through the history: the items that come are the items that go back, in
//! their order.

use serde_json::{Value, json};
use test_support::wires::encode_request;
use values::json::RawJson;
use values::message::{ContentPart, Message, ProviderFields, Role, TextPart, ToolCall};

use super::support::{encoded, plain, read, settings};
use crate::support::{answered, call, message, opaque, request, result, thought, user};

fn said(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
           "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn called(n: u32) -> Value {
    json!({"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("c{n}"), "name": "t",
           "arguments": "{\"n\": 1.0e2 }", "status": "completed"})
}

fn thinking(n: u32) -> Value {
    json!({"type": "reasoning", "id": format!("rs_{n}"), "encrypted_content": format!("E{n}+/="),
           "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]})
}

/// Returns the answer with these items. Reasoning alone is an answer only if it was cut.
fn answer(output: &[Value]) -> Message {
    let is_cut = output.iter().all(|item| item["type"] == "reasoning");
    let status = if is_cut { "incomplete" } else { "completed" };
    let details = is_cut.then(|| json!({"reason": "max_output_tokens"}));
    let body = json!({"object": "response", "status": status, "incomplete_details": details, "output": output});
    answered(&plain(&body).1.unwrap())
}

/// Returns the items that the answer becomes for the provider `p`, which gave it.
fn sent(message: Message) -> Vec<Value> {
    encoded(&request(vec![message]))["input"].as_array().unwrap().clone()
}

/// Returns an item without what a stateless request leaves out.
fn stateless(item: &Value) -> Value {
    let mut item = item.clone();
    let fields = item.as_object_mut().unwrap();
    if fields["type"] == "message" || fields["type"] == "function_call" {
        fields.remove("id");
        fields.remove("status");
    }
    item
}

#[test]
fn items_go_back_in_their_order() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}});
    let refusal = json!({"type": "message", "id": "msg_9", "role": "assistant", "status": "completed", "content": [{"type": "refusal", "refusal": "no"}]});
    let two_parts = json!({"type": "message", "id": "msg_8", "role": "assistant", "status": "completed", "content": [
        {"type": "output_text", "text": "a", "annotations": []}, {"type": "refusal", "refusal": "b"}]});
    let mut phased = said("msg_2", "later");
    phased["phase"] = json!("commentary");
    let mut marked = called(3);
    marked["namespace"] = json!({"b": 1, "a": [2]});
    for output in [
        vec![said("msg_1", "hello")],
        vec![said("msg_1", "first"), thinking(1), called(1), said("msg_2", "last")],
        vec![thinking(1), called(1), thinking(2), called(2)],
        vec![thinking(1), called(1), called(2), said("msg_1", "hello")],
        vec![thinking(1), search.clone(), thinking(2), said("msg_1", "hello")],
        vec![thinking(1), thinking(2), said("msg_1", "hello")],
        vec![said("msg_1", "one"), said("msg_2", "two"), said("msg_3", "three")],
        vec![phased.clone(), said("msg_3", "last")],
        vec![said("msg_1", "first"), phased],
        vec![refusal],
        vec![two_parts],
        vec![search, marked, said("msg_1", "hello")],
    ] {
        let wanted: Vec<_> = output.iter().map(stateless).collect();
        assert_eq!(sent(answer(&output)), wanted, "{output:?}");
    }
}

#[test]
fn reasoning_that_the_provider_would_refuse_stays_out() {
    let mut bare = thinking(1);
    bare["encrypted_content"] = Value::Null;
    let mut stated = thinking(2);
    stated["status"] = json!("completed");
    stated["content"] = json!([]);
    stated.as_object_mut().unwrap().remove("summary");
    let readable = json!({"type": "reasoning", "id": "rs_3", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]});
    let clean = json!({"type": "reasoning", "id": "rs_2", "encrypted_content": "E2+/=", "summary": []});
    let call = stateless(&called(1));
    for (output, wanted, why) in [
        (vec![called(1), thinking(1)], vec![call.clone()], "nothing follows it"),
        (
            vec![bare, called(1)],
            vec![call.clone()],
            "the provider would look for it",
        ),
        (
            vec![stated, called(1)],
            vec![clean, call.clone()],
            "its state is only for reading",
        ),
        (
            vec![readable.clone(), called(1)],
            vec![readable, call],
            "it holds all that it says",
        ),
    ] {
        assert_eq!(sent(answer(&output)), wanted, "{why}");
    }
    // What follows must be of the same answer.
    let history = request(vec![answer(&[said("msg_1", "hello"), thinking(1)]), user("go on")]);
    assert_eq!(encoded(&history)["input"].as_array().unwrap().len(), 2);
}

#[test]
fn what_one_provider_gave_reaches_no_other() {
    let mut phased = said("msg_1", "hello");
    phased["phase"] = json!("commentary");
    let search = json!({"type": "web_search_call", "id": "ws_1"});
    let mut marked = called(1);
    marked["secret"] = json!(true);
    let history = request(vec![
        answer(&[thinking(1), search, phased, marked]),
        result("c1", vec![ContentPart::text("r")]),
    ]);
    let body: Value = serde_json::from_slice(&encode_request(&history, &settings("other"), true)).unwrap();
    let text = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello", "annotations": []}]});
    let output = json!({"type": "function_call_output", "call_id": "c1", "output": "r"});
    assert_eq!(body["input"], json!([text, stateless(&called(1)), output]));
}

#[test]
fn calls_without_results_stay_out_with_the_reasoning_before_them() {
    let call = json!({"type": "computer_call", "id": "cu_1", "call_id": "k1", "action": {"type": "screenshot"}});
    let shell = json!({"type": "shell_call", "id": "sh_1", "call_id": "k2", "action": {"commands": ["ls"]}});
    let output = json!({"type": "shell_call_output", "id": "so_1", "call_id": "k2", "output": []});
    let sent = sent(answer(&[
        thinking(1),
        call,
        thinking(2),
        shell.clone(),
        output.clone(),
        said("m", "done"),
    ]));
    assert_eq!(sent, [thinking(2), shell, output, stateless(&said("m", "done"))]);
}

#[test]
fn ids_of_calls_are_short_and_none_is_used_twice() {
    let long = "k".repeat(65);
    let pair = |id: &str| {
        [
            message(Role::Assistant, vec![call(id, "{}")]),
            result(id, vec![ContentPart::text("ok")]),
        ]
    };
    let messages = ["c1", "c1", &long].into_iter().flat_map(pair).collect();
    let input = encoded(&request(messages))["input"].clone();
    let ids: Vec<_> = input
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["call_id"].as_str().unwrap())
        .collect();
    assert_eq!((ids[0], ids[1]), ("c1", "c1"));
    assert!(ids[2] == ids[3] && ids[2] != "c1" && ids[4] == ids[5], "{ids:?}");
    assert!(ids.iter().all(|id| id.len() <= 64), "{ids:?}");
}

#[test]
fn unknown_items_and_parts_survive_byte_for_byte() {
    let item =
        r#"{"type":"hologram_call", "id":"h1","depth":1.0e2,"big":12345678901234567890123,"text":"é \u00e9 \/"}"#;
    let part = r#"{"type":"hologram" ,"rays":[1.0]}"#;
    let reasoning = r#"{"type":"reasoning","id":"rs_1","encrypted_content":"a\/b\u00e9==","summary":[{"type":"summary_text","text":"x\/"}],"format":"f"}"#;
    let body = format!(
        r#"{{"output":[{item},{reasoning},{{"type":"message","id":"m","role":"assistant","content":[{{"type":"output_text","text":"a"}},{part},{{"type":"output_text","text":"b"}}]}}]}}"#
    );
    let response = read(body.as_bytes()).1.unwrap();
    let text = encode_request(&request(vec![answered(&response)]), &settings("p"), true);
    let text = String::from_utf8(text).unwrap();
    let said = |text: &str| {
        format!(
            r#"{{"type":"message","role":"assistant","content":[{{"annotations":[],"text":"{text}","type":"output_text"}}]}}"#
        )
    };
    let rest = format!(r#"{{"type":"message","role":"assistant","content":[{part}]}}"#);
    let expected = format!("[{item},{reasoning},{},{rest},{}]", said("a"), said("b"));
    assert!(text.contains(&expected), "{text}\n{expected}");
}

#[test]
fn parts_of_other_protocols_become_items_too() {
    let call = |signature: Option<&str>| {
        ContentPart::ToolCall(ToolCall {
            id: "c1".to_owned(),
            name: "t".to_owned(),
            arguments: "not json".to_owned(),
            signature: signature.map(str::to_owned),
        })
    };
    let text = |signature: &str| {
        ContentPart::Text(TextPart {
            text: "hello".to_owned(),
            signature: Some(signature.to_owned()),
            ..TextPart::default()
        })
    };
    let reasoning = thought("hm", Some("s"));
    let mine = |content| Message {
        provider_fields: Some(ProviderFields {
            provider: "p".to_owned(),
            model: Some("m".to_owned()),
            fields: vec![("odd".to_owned(), RawJson::new("1"))],
        }),
        ..message(Role::Assistant, content)
    };
    let plain_text = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello", "annotations": []}]});
    let plain_call = json!({"type": "function_call", "call_id": "c1", "name": "t", "arguments": "not json"});
    for (message, wanted) in [
        (
            message(Role::Assistant, vec![reasoning, text("s"), call(Some("{\"a\":1}"))]),
            vec![plain_text.clone(), plain_call.clone()],
        ),
        (
            mine(vec![text("not json"), call(Some("[1]"))]),
            vec![plain_text, plain_call],
        ),
        (
            mine(vec![call(Some(r#"{"id":"fc_1","a":1,"a":2}"#))]),
            vec![json!({"type": "function_call", "call_id": "c1", "name": "t", "arguments": "not json", "a": 2})],
        ),
        (
            mine(vec![opaque("p", "{"), opaque("p", "[1]"), opaque("p", "7")]),
            vec![],
        ),
        (
            mine(vec![ContentPart::text(""), ContentPart::Unknown(json!({"type": "x"}))]),
            vec![],
        ),
    ] {
        assert_eq!(sent(message), wanted);
    }
}
