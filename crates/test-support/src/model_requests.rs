//! Promises of every captured model request: one result per tool call, and a prefix that
//! stays the same bytes.

use serde_json::Value;

/// Fails unless the requests, in their order, fulfil the promises.
pub(crate) fn check_requests(requests: &[impl AsRef<[u8]>]) {
    let parse = |request: &_| serde_json::from_slice(AsRef::<[u8]>::as_ref(request)).expect("a request is JSON");
    let bodies: Vec<Value> = requests.iter().map(parse).collect();
    bodies.iter().for_each(check_results);
    for (later, (request, body)) in requests.iter().zip(&bodies).enumerate() {
        for (earlier, earlier_body) in requests.iter().zip(&bodies).take(later) {
            if continues(earlier_body, body) {
                let begins = request.as_ref().starts_with(prefix(earlier.as_ref()));
                assert!(
                    begins,
                    "a request does not begin with the bytes of the one that it continues"
                );
            }
        }
    }
}

/// Each tool call has exactly one result, and the results follow it at once.
fn check_results(body: &Value) {
    let mut open: Vec<&str> = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        for block in blocks(message, "tool_result") {
            let id = block["tool_use_id"].as_str().expect("a result names its call");
            let index = open.iter().position(|call| *call == id);
            open.remove(
                index.unwrap_or_else(|| panic!("the result of {id} has no call, or is the second one: {body}")),
            );
        }
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().expect("a result names its call");
            let index = open.iter().position(|call| *call == id);
            open.remove(
                index.unwrap_or_else(|| panic!("the result of {id} has no call, or is the second one: {body}")),
            );
            continue;
        }
        assert!(open.is_empty(), "calls without a result: {open:?} in {body}");
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open = calls
            .chain(blocks(message, "tool_use"))
            .map(|call| call["id"].as_str().expect("a call has an id"))
            .collect();
    }
    assert!(open.is_empty(), "calls without a result: {open:?} in {body}");
    check_outputs(body);
}

/// In responses, each call has exactly one output after it.
fn check_outputs(body: &Value) {
    let mut open: Vec<&str> = Vec::new();
    for item in body["input"].as_array().into_iter().flatten() {
        let id = item["call_id"].as_str();
        if item["type"] == "function_call" {
            open.push(id.expect("a call has an id"));
        } else if item["type"] == "function_call_output" {
            let index = open.iter().position(|call| Some(*call) == id);
            open.remove(
                index.unwrap_or_else(|| panic!("the output of {id:?} has no call, or is the second one: {body}")),
            );
        }
    }
    assert!(open.is_empty(), "calls without an output: {open:?} in {body}");
    check_responses(body);
    check_converse(body);
}

/// In Bedrock's Converse, the turn after calls begins with their results, one for each.
fn check_converse(body: &Value) {
    let mut open: Vec<&str> = Vec::new();
    for turn in body["messages"].as_array().into_iter().flatten() {
        let of_kind = |kind: &str| {
            let blocks = turn["content"].as_array().into_iter().flatten();
            let ids = blocks
                .filter_map(move |block| block.get(kind))
                .map(|call| call["toolUseId"].as_str());
            ids.map(|id| id.expect("a call and a result have an id"))
                .collect::<Vec<_>>()
        };
        assert_eq!(of_kind("toolResult"), open, "{body}");
        open = of_kind("toolUse");
    }
    assert!(open.is_empty(), "calls without a result: {open:?} in {body}");
}

/// In Gemini's protocol, the turn after calls begins with their responses, one for each.
fn check_responses(body: &Value) {
    let mut open: Vec<&str> = Vec::new();
    for turn in body["contents"].as_array().into_iter().flatten() {
        let of_kind = |kind: &str| {
            let parts = turn["parts"].as_array().into_iter().flatten();
            let ids = parts
                .filter_map(move |part| part.get(kind))
                .map(|call| call["id"].as_str());
            ids.map(|id| id.expect("a call and a response have an id"))
                .collect::<Vec<_>>()
        };
        assert_eq!(of_kind("functionResponse"), open, "{body}");
        open = of_kind("functionCall");
    }
    assert!(open.is_empty(), "calls without a response: {open:?} in {body}");
}

/// Returns the blocks of a message in Anthropic's form that are of a kind.
fn blocks<'a>(message: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks.filter(move |block| block["type"] == kind)
}

fn continues(earlier: &Value, later: &Value) -> bool {
    let same = |field: &str| earlier[field] == later[field];
    same("model")
        && same("system")
        && same("systemInstruction")
        && same("tools")
        && same("toolConfig")
        && same("response_format")
        && messages(later).starts_with(messages(earlier))
}

fn messages(body: &Value) -> &[Value] {
    let lists = ["messages", "input", "contents"];
    let list = lists.into_iter().find_map(|name| body[name].as_array());
    list.map_or(&[], Vec::as_slice)
}

/// Returns a body up to the end of its last message.
fn prefix(body: &[u8]) -> &[u8] {
    let ends = [
        &b"],\"stream\":"[..],
        b"],\"generationConfig\":",
        b"],\"inferenceConfig\":",
    ];
    let index = |end: &[u8]| body.windows(end.len()).rposition(|window| window == end);
    let index = ends.into_iter().find_map(index);
    &body[..index.expect("the messages are followed by what may change")]
}
