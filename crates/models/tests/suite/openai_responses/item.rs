//! How items are assembled. Servers name and number them in different ways.

use agent::ports::{ModelErrorClass, ModelEvent};
use models::CapSettings;
use serde_json::{Value, json};
use values::message::ContentPart;

use super::support::{
    added, call_item, decode_with, done, end, message_item, plain, response, stream, stream_text, text_delta, texts,
};
use crate::support::{call, generated_id};

#[test]
fn the_last_list_is_the_truth() {
    let (emitted, answer) = stream(&[
        text_delta("hallo"),
        added(1, &call_item("")),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 1, "delta": "{\"a\":1}"}),
        end("completed", &[message_item("hello"), call_item("{\"a\":2}")]),
    ]);
    let answer = answer.unwrap();
    assert_eq!(texts(&emitted), "hallo", "what was emitted is not emitted again");
    let call = call("call_1", "{\"a\":2}");
    assert_eq!(answer.content, [ContentPart::text("hello"), call]);
    let dropped = stream(&[
        text_delta("no"),
        done(1, &call_item("{}")),
        end("completed", &[call_item("{}")]),
    ]);
    let content = dropped.1.unwrap().content;
    assert!(matches!(content.as_slice(), [ContentPart::ToolCall(_)]), "{content:?}");
}

#[test]
fn an_item_that_only_the_last_list_has_disturbs_no_other() {
    let mut first = message_item("new");
    first["id"] = json!("msg_0");
    let (emitted, answer) = stream(&[text_delta("hello"), end("completed", &[first, message_item("hello")])]);
    assert_eq!(texts(&emitted), "hellonew");
    let content = answer.unwrap().content;
    let words: Vec<_> = content.iter().filter_map(ContentPart::as_text).collect();
    assert_eq!(words, ["new", "hello"]);
}

/// Servers number and name items as they like: all alike, anew in each event, or not at all.
#[test]
fn items_are_distinguished_by_more_than_their_numbers() {
    let call = |n: u32| json!({"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("c{n}"), "name": "t", "arguments": format!("{{\"n\":{n}}}")});
    let opened = |n: u32| {
        let mut item = call(n);
        item["arguments"] = json!("");
        item
    };
    let delta = |id: Value, index: Value, n: u32| {
        let event = json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": format!("{{\"n\":{n}}}")});
        event
    };
    let mut renamed = call(2);
    renamed["id"] = json!("fc_other");
    for events in [
        // In turn, all numbered 0.
        vec![
            added(0, &opened(1)),
            delta(json!("fc_1"), json!(0), 1),
            done(0, &call(1)),
            added(0, &opened(2)),
            delta(json!("fc_2"), json!(0), 2),
            done(0, &call(2)),
        ],
        // At once, all numbered 0.
        vec![
            added(0, &opened(1)),
            added(0, &opened(2)),
            delta(json!("fc_2"), json!(0), 2),
            delta(json!("fc_1"), json!(0), 1),
        ],
        // Numbered well, with another id in each event.
        vec![
            added(3, &opened(1)),
            delta(json!("x"), json!(3), 1),
            done(3, &call(1)),
            added(5, &opened(2)),
            delta(json!("y"), json!(5), 2),
            done(5, &renamed),
        ],
        // Neither named nor numbered.
        vec![
            added(0, &opened(1)),
            delta(Value::Null, Value::Null, 1),
            added(1, &opened(2)),
            delta(Value::Null, Value::Null, 2),
        ],
        // The announcement comes after the words.
        vec![
            delta(json!("fc_1"), json!(0), 1),
            added(0, &opened(1)),
            done(1, &call(2)),
        ],
        // Never announced, all numbered 0.
        vec![
            delta(json!("fc_1"), json!(0), 1),
            done(0, &call(1)),
            delta(json!("fc_2"), json!(0), 2),
            done(0, &call(2)),
        ],
        // No announcement at all.
        vec![done(0, &call(1)), done(1, &call(2))],
    ] {
        for last in [end("completed", &[call(1), call(2)]), end("completed", &[])] {
            let all = [events.clone(), vec![last]].concat();
            let (emitted, answer) = stream(&all);
            let mut calls = Vec::new();
            for event in &emitted {
                match event {
                    ModelEvent::ToolCallStarted { index, id, .. } => {
                        assert_eq!(*index, calls.len());
                        calls.push((id.clone(), String::new()));
                    }
                    ModelEvent::ToolCallDelta { index, arguments } => calls[*index].1.push_str(arguments),
                    other => panic!("{other:?}"),
                }
            }
            let expected = [1, 2].map(|n| (format!("c{n}"), format!("{{\"n\":{n}}}")));
            assert_eq!(calls, expected, "{all:?}");
            let answer = answer.unwrap().content.into_iter().map(|part| match part {
                ContentPart::ToolCall(call) => (call.id, call.arguments),
                other => panic!("{other:?}"),
            });
            assert_eq!(answer.collect::<Vec<_>>(), expected, "{all:?}");
        }
    }
}

#[test]
fn a_call_without_an_id_of_its_own_gets_one() {
    let call = |id: Value, call_id: Value| json!({"type": "function_call", "id": id, "call_id": call_id, "name": "t", "arguments": {"a": 1}});
    let mut other = call(json!("fc_2"), json!("same"));
    other["name"] = json!("other");
    let calls = [
        call(json!("fc_1"), json!("same")),
        other,
        call(json!("fc_3"), Value::Null),
        call(Value::Null, json!("")),
    ];
    let content = plain(&response("completed", &calls)).1.unwrap().content;
    let ids = content.iter().map(|part| match part {
        ContentPart::ToolCall(call) => {
            assert_eq!(
                call.arguments, r#"{"a":1}"#,
                "an object where the protocol has its text"
            );
            call.id.clone()
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(
        ids.collect::<Vec<_>>(),
        ["same".to_owned(), generated_id(1), "fc_3".to_owned(), generated_id(2)]
    );
}

/// Returns the calls of an answer, after checking that the events have the same.
fn calls_of(events: &[Value]) -> Vec<(String, String)> {
    let (emitted, answer) = stream(events);
    let mut calls = Vec::new();
    for event in emitted {
        match event {
            ModelEvent::ToolCallStarted { id, .. } => calls.push((id, String::new())),
            ModelEvent::ToolCallDelta { index, arguments } => calls[index].1.push_str(&arguments),
            _ => {}
        }
    }
    let stored = answer.unwrap().content.into_iter().filter_map(|part| match part {
        ContentPart::ToolCall(call) => Some((call.id, call.arguments)),
        _ => None,
    });
    assert_eq!(stored.collect::<Vec<_>>(), calls, "{events:?}");
    calls
}

#[test]
fn a_call_that_is_repeated_is_one_call() {
    let item = call_item("{\"a\":1}");
    let mut other = item.clone();
    other["id"] = json!("fc_2");
    let delta = |id: &str, index: u64, piece: &str| json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": piece});
    let mut opened = other.clone();
    opened["arguments"] = json!("");
    let once = [("call_1".to_owned(), "{\"a\":1}".to_owned())];
    for events in [
        vec![done(0, &item), done(1, &other), end("completed", &[])],
        vec![
            done(0, &item),
            done(1, &other),
            end("completed", &[item.clone(), other.clone()]),
        ],
        vec![end("completed", &[item.clone(), other.clone()])],
        vec![
            done(0, &item),
            added(1, &opened),
            delta("fc_2", 1, "{\"a\":1}"),
            done(1, &other),
            end("completed", &[]),
        ],
        vec![
            done(0, &item),
            added(1, &opened),
            delta("fc_2", 1, "{\"a\":1}"),
            end("completed", &[]),
        ],
        vec![
            added(0, &call_item("")),
            delta("fc_1", 0, "{\"a\":"),
            delta("fc_1", 0, "{\"a\":1}"),
            end("completed", &[]),
        ],
    ] {
        assert_eq!(calls_of(&events), once, "{events:?}");
    }
    let mut different = opened;
    different["arguments"] = json!("{\"a\":2}");
    let calls = calls_of(&[done(0, &item), done(1, &different), end("completed", &[])]);
    assert_eq!(calls.len(), 2, "{calls:?}");
}

#[test]
fn no_call_is_lost() {
    let once = [("call_1".to_owned(), "{\"a\":1}".to_owned())];
    let said = message_item("I compute.");
    let unlisted = [
        text_delta("I compute."),
        done(0, &said),
        done(1, &call_item("{\"a\":1}")),
        end("completed", std::slice::from_ref(&said)),
    ];
    assert_eq!(calls_of(&unlisted), once);
    let mut custom = call_item("");
    custom["type"] = json!("custom_tool_call");
    custom["input"] = json!("{\"a\":1}");
    custom.as_object_mut().unwrap().remove("arguments");
    assert_eq!(calls_of(&[end("completed", &[said, custom])]), once);
}

#[test]
fn items_that_only_the_provider_reads_are_no_answer() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let error = plain(&response("completed", &[search])).1.unwrap_err();
    assert_eq!(error.message, "the response has no text and no tool call");
    let picture = json!({"type": "image_generation_call", "id": "ig_1", "result": "AAAA"});
    assert!(plain(&response("completed", &[picture])).1.is_ok());
}

#[test]
fn answers_are_bounded() {
    let calls: Vec<_> = (0..4).map(|n| json!({"type": "function_call", "id": format!("f{n}"), "call_id": format!("c{n}"), "name": "t", "arguments": "{}"})).collect();
    let caps = CapSettings {
        tool_calls: 3,
        ..CapSettings::default()
    };
    let body = response("completed", &calls).to_string();
    let opened: Vec<_> = (0..).zip(&calls).map(|(n, call)| added(n, call)).collect();
    let deltas: Vec<_> = (0..4)
        .map(|n| json!({"type": "response.function_call_arguments.delta", "output_index": n, "delta": "{"}))
        .collect();
    for text in [body, stream_text(&opened), stream_text(&deltas)] {
        let error = decode_with(None, caps, &[text.as_bytes()]).1.unwrap_err();
        assert_eq!(
            (error.class, error.message.as_str()),
            (ModelErrorClass::Protocol, "the response has more than 3 tool calls")
        );
    }
    let caps = CapSettings {
        response_bytes: 200,
        ..CapSettings::default()
    };
    let text = stream_text(&[text_delta(&"a".repeat(300))]);
    let error = decode_with(None, caps, &[text.as_bytes()]).1.unwrap_err();
    assert_eq!(error.message, "the response is larger than 200 bytes");
}
