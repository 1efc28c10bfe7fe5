//! Tool calls in the forms of many servers: none is lost, none is doubled, none is merged with
//! another.

use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::FinishReason;
use serde::Deserialize;
use serde_json::Value;
use values::message::{ContentPart, ToolCall};

use super::decoder::{read, stream};
use crate::support::generated_id;

pub(super) const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;

/// Decodes a stream of lists of fragments and returns the calls: id, name and arguments.
fn calls(lists: &[&str]) -> Vec<(String, String, String)> {
    let chunks: Vec<_> = lists
        .iter()
        .map(|list| format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":{list}}}}}]}}"#))
        .collect();
    let mut data: Vec<_> = chunks.iter().map(String::as_str).collect();
    data.push(FINISH);
    let (events, end) = stream(&data);
    let response = end.unwrap();
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    let calls: Vec<_> = response.content.into_iter().filter_map(call).collect();
    let calls: Vec<_> = calls
        .into_iter()
        .map(|call| (call.id, call.name, call.arguments))
        .collect();
    assert_eq!(reported(&events), calls);
    calls
}

fn call(part: ContentPart) -> Option<ToolCall> {
    match part {
        ContentPart::ToolCall(call) => Some(call),
        _ => None,
    }
}

/// Returns the calls as the events tell them.
pub(super) fn reported(events: &[ModelEvent]) -> Vec<(String, String, String)> {
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for event in events {
        match event {
            ModelEvent::ToolCallStarted { index, id, name } => {
                assert_eq!(*index, calls.len());
                calls.push((id.clone(), name.clone(), String::new()));
            }
            ModelEvent::ToolCallDelta { index, arguments } => calls[*index].2.push_str(arguments),
            _ => {}
        }
    }
    calls
}

/// Lists of fragments, one for each chunk, and the calls that they are: id, name and arguments. An
/// id `#1` is the first that is made.
#[derive(Debug, Deserialize)]
struct Row {
    why: String,
    lists: Vec<Value>,
    calls: Vec<(String, String, String)>,
}

#[test]
fn no_fragment_is_lost_doubled_or_merged_with_another_call() {
    let rows: Vec<Row> = serde_json::from_str(include_str!("calls.json")).unwrap();
    for row in rows {
        let lists: Vec<_> = row.lists.iter().map(Value::to_string).collect();
        let expected = row.calls.into_iter().map(|(id, name, arguments)| {
            let made = id.strip_prefix('#').map(|number| generated_id(number.parse().unwrap()));
            (made.unwrap_or(id), name, arguments)
        });
        let got = calls(&lists.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(got, expected.collect::<Vec<_>>(), "{}", row.why);
    }
}

#[test]
fn calls_that_share_an_index_stay_apart() {
    for [first, second] in [
        [r#""name":"f","arguments":"{}""#, r#""name":"f","arguments":"{}""#],
        [r#""name":"f","arguments":"""#, r#""name":"f","arguments":"""#],
        [r#""name":"f","arguments":"{\"x\":1}""#, r#""name":"f","arguments":"""#],
        [r#""name":"f","arguments":"{\"x\":""#, r#""name":"g","arguments":"{}""#],
    ] {
        let fragment = |id: &str, function: &str| format!(r#"[{{"index":0,"id":"{id}","function":{{{function}}}}}]"#);
        let calls = calls(&[&fragment("a", first), &fragment("b", second)]);
        let ids: Vec<_> = calls.iter().map(|(id, ..)| id.as_str()).collect();
        assert_eq!(ids, ["a", "b"], "{first} {second}");
    }
}

#[test]
fn a_last_message_may_repeat_the_calls_of_the_stream() {
    let piece = |call: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{call}]}}}}]}}"#);
    let pieces = [
        piece(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#),
        piece(r#"{"index":1,"id":"b","function":{"name":"f","arguments":"{\"x\""}}"#),
    ];
    for ids in [["a", "b"], ["", ""]] {
        let call = |id: &str, arguments: &str| {
            format!(r#"{{"id":"{id}","function":{{"name":"f","arguments":"{arguments}"}}}}"#)
        };
        let calls = [call(ids[0], "{}"), call(ids[1], r#"{\"x\":1}"#)].join(",");
        let last = format!(
            r#"{{"choices":[{{"index":0,"message":{{"tool_calls":[{calls}]}},"finish_reason":"tool_calls"}}]}}"#
        );
        let (events, end) = stream(&[&pieces[0], &pieces[1], &last]);
        let expected = [("a", "{}"), ("b", "{\"x\":1}")]
            .map(|(id, arguments)| (id.to_owned(), "f".to_owned(), arguments.to_owned()));
        assert_eq!(reported(&events), expected);
        let stored: Vec<_> = end.unwrap().content.into_iter().filter_map(call_of).collect();
        assert_eq!(stored, expected);
    }
}

pub(super) fn call_of(part: ContentPart) -> Option<(String, String, String)> {
    call(part).map(|call| (call.id, call.name, call.arguments))
}

#[test]
fn ids_are_unique_in_an_answer() {
    let body = r#"{"choices":[{"message":{"tool_calls":[
        {"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}}]}"#;
    let (_, end) = read(body.as_bytes());
    let response = end.unwrap();
    assert_eq!(
        response.finish_reason,
        FinishReason::ToolCalls,
        "a whole body needs no reason"
    );
    let ids: Vec<_> = response
        .content
        .into_iter()
        .filter_map(call)
        .map(|call| call.id)
        .collect();
    assert_eq!(ids, ["a".to_owned(), generated_id(1)]);
}

#[test]
fn arguments_that_are_an_object_are_its_text() {
    let calls = calls(&[r#"[{"index":0,"id":"a","function":{"name":"f","arguments":{"n": 1.50 }}}]"#]);
    let expected = ("a".to_owned(), "f".to_owned(), "{\"n\": 1.50 }".to_owned());
    assert_eq!(calls, [expected]);
}

#[test]
fn the_first_form_of_the_protocol_is_understood() {
    let chunk = |call: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"function_call":{call}}}}}]}}"#);
    let data = [
        chunk(r#"{"name":"f","arguments":""}"#),
        chunk(r#"{"arguments":"{\"x\""}"#),
        chunk(r#"{"arguments":":1}"}"#),
    ];
    let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}"#;
    let (events, end) = stream(&[&data[0], &data[1], &data[2], finish]);
    assert_eq!(
        reported(&events),
        [(generated_id(1), "f".to_owned(), "{\"x\":1}".to_owned())]
    );
    assert_eq!(end.unwrap().finish_reason, FinishReason::ToolCalls);
}

#[test]
fn an_empty_call_beside_an_answer_is_none() {
    let empty = [
        r#""function_call":{"arguments":"","name":""}"#,
        r#""function_call":{}"#,
        r#""function_call":{"arguments":"{}","name":null}"#,
        r#""tool_calls":[{"id":"","type":"function","function":{"arguments":"","name":""}}]"#,
        r#""tool_calls":[{"index":0,"id":null,"type":"","function":{}}]"#,
    ];
    for call in empty {
        let message = format!(r#"{{"role":"assistant","content":"hello",{call}}}"#);
        let piece = format!(r#"{{"choices":[{{"index":0,"delta":{message}}}]}}"#);
        let whole = format!(r#"{{"choices":[{{"index":0,"message":{message}}}]}}"#);
        let plain = read(whole.as_bytes());
        for (events, end) in [stream(&[&piece, "[DONE]"]), plain] {
            let response = end.unwrap();
            assert_eq!(response.content, [ContentPart::text("hello")], "{call}");
            assert_eq!(response.finish_reason, FinishReason::Stop, "{call}");
            assert!(reported(&events).is_empty(), "{call}");
        }
    }
}

#[test]
fn too_many_calls_and_calls_without_a_name_are_errors() {
    let many: Vec<_> = (0..300)
        .map(|n| format!(r#"{{"index":{n},"id":"c{n}","function":{{"name":"f"}}}}"#))
        .collect();
    let chunk = |list: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{list}]}}}}]}}"#);
    let nameless = chunk(r#"{"index":0,"id":"a","function":{"arguments":"{}"}}"#);
    for (data, expected) in [
        (chunk(&many.join(",")), "the response has more than 256 tool calls"),
        (nameless, "a tool call has no name"),
    ] {
        let error = stream(&[&data, FINISH]).1.unwrap_err();
        assert_eq!(
            (error.class, error.message.as_str()),
            (ModelErrorClass::Protocol, expected)
        );
    }
}

#[test]
fn fifty_thousand_fragments_take_linear_time() {
    let chunk =
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"}}}}"}}]}}]}"#;
    let first = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\""}}]}}]}"#;
    let mut data = vec![first];
    data.extend(std::iter::repeat_n(chunk, 50_000));
    data.push(FINISH);
    let start = std::time::Instant::now();
    let calls = reported(&stream(&data).0);
    assert_eq!((calls.len(), calls[0].2.len()), (1, 6 + 4 * 50_000));
    // Quadratic work would take minutes here.
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
}
