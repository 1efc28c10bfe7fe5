//! Promises that every captured model request keeps: one result per tool call, and a prefix that stays the same bytes.

use serde_json::Value;

/// Fails unless the requests, in their order, keep the promises.
pub(super) fn check_requests(requests: &[impl AsRef<[u8]>]) {
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
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().expect("a result names its call");
            let place = open.iter().position(|call| *call == id);
            open.remove(
                place.unwrap_or_else(|| panic!("the result of {id} has no call, or is the second one: {body}")),
            );
            continue;
        }
        assert!(open.is_empty(), "calls without a result: {open:?} in {body}");
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open = calls
            .map(|call| call["id"].as_str().expect("a call has an id"))
            .collect();
    }
    assert!(open.is_empty(), "calls without a result: {open:?} in {body}");
}

fn continues(earlier: &Value, later: &Value) -> bool {
    let same = |field: &str| earlier[field] == later[field];
    let messages = |body: &Value| body["messages"].as_array().cloned().unwrap_or_default();
    same("model") && same("tools") && same("response_format") && messages(later).starts_with(&messages(earlier))
}

/// Returns a body up to the end of its last message.
fn prefix(body: &[u8]) -> &[u8] {
    let end = b"],\"stream\":";
    let place = body.windows(end.len()).rposition(|window| window == end);
    &body[..place.expect("the messages are followed by what may change")]
}
