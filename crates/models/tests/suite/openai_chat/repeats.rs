//! Calls in other spellings, and calls and texts that servers repeat: each is there once.

use agent::state::FinishReason;
use values::message::ContentPart;

use super::calls::{FINISH, call_of, reported};
use super::decoder::{read, stream};

#[test]
fn a_call_in_both_forms_is_one_call() {
    let listed = |arguments: &str| {
        format!(r#""tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":"{arguments}"}}}}]"#)
    };
    let legacy = |arguments: &str| format!(r#""function_call":{{"name":"f","arguments":"{arguments}"}}"#);
    let both = |arguments: &str| format!("{},{}", legacy(arguments), listed(arguments));
    let whole = r#"{\"x\":1}"#;
    for fields in [
        vec![both(""), both(whole)],
        vec![both(r#"{\"x\""#), both(":1}")],
        vec![both(whole)],
        vec![legacy(""), both(whole)],
    ] {
        let chunk = |fields: &String| format!(r#"{{"choices":[{{"index":0,"delta":{{{fields}}}}}]}}"#);
        let chunks: Vec<_> = fields.iter().map(chunk).collect();
        let mut data: Vec<_> = chunks.iter().map(String::as_str).collect();
        data.push(FINISH);
        let (events, end) = stream(&data);
        let calls = reported(&events);
        assert_eq!(calls.len(), 1, "{fields:?}: {calls:?}");
        assert_eq!((calls[0].1.as_str(), calls[0].2.as_str()), ("f", r#"{"x":1}"#));
        assert_eq!(
            end.unwrap().content.into_iter().filter_map(call_of).collect::<Vec<_>>(),
            calls
        );
    }
}

#[test]
fn calls_are_understood_in_the_spellings_of_other_protocols() {
    let calls = [
        r#""tool_calls":[{"name":"f","arguments":{"x":1}}]"#,
        r#""tool_calls":[{"id":"a","name":"f","arguments":"{\"x\":1}"}]"#,
        r#""tool_calls":[{"id":"a","type":"function","name":"f","parameters":{"x":1}}]"#,
        r#""content":[{"type":"tool_use","id":"a","name":"f","input":{"x":1}}]"#,
        r#""content":[{"type":"text","text":"I compute."},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}]"#,
        r#""content":[{"type":"tool_use","id":"a","name":"f","input":{"x":1}}],
            "tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
    ];
    for fields in calls {
        let body = format!(r#"{{"choices":[{{"index":0,"message":{{{fields}}},"finish_reason":"stop"}}]}}"#);
        let (events, end) = read(body.as_bytes());
        let calls = reported(&events);
        assert_eq!(calls.len(), 1, "{fields}: {calls:?}");
        assert_eq!(
            (calls[0].1.as_str(), calls[0].2.as_str()),
            ("f", r#"{"x":1}"#),
            "{fields}"
        );
        let response = end.unwrap();
        assert_eq!(response.finish_reason, FinishReason::ToolCalls, "{fields}");
        let stored: Vec<_> = response.content.into_iter().filter_map(call_of).collect();
        assert_eq!(stored, calls, "{fields}");
    }
    let unknown =
        r#"{"choices":[{"index":0,"message":{"content":"hi","tool_calls":[{"novel":1}]},"finish_reason":"stop"}]}"#;
    let error = read(unknown.as_bytes()).1.unwrap_err();
    assert_eq!(error.message, "the response has content that can't be read");
}

#[test]
fn a_last_message_after_the_pieces_repeats_them() {
    let piece = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    let last = |message: &str| format!(r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"stop"}}]}}"#);
    for (content, expected) in [
        (r#""Hello""#, "Hello"),
        (r#""Hello!""#, "Hello!"),
        (
            r#"[{"type":"text","text":"Hel"},{"type":"text","text":"lo!"}]"#,
            "Hello!",
        ),
    ] {
        let last = last(&format!(r#"{{"role":"assistant","content":{content}}}"#));
        let (_, end) = stream(&[&piece(r#"{"content":"Hel"}"#), &piece(r#"{"content":"lo"}"#), &last]);
        assert_eq!(end.unwrap().content, [ContentPart::text(expected)], "{content}");
    }
    let call = |id: &str| {
        format!(r#"{{"tool_calls":[{{"index":0,"id":"{id}","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#)
    };
    let (events, end) = stream(&[&piece(&call("a")), &last(&call("b"))]);
    assert_eq!(reported(&events), [("a".to_owned(), "f".to_owned(), "{}".to_owned())]);
    assert_eq!(end.unwrap().content.len(), 1);
}
