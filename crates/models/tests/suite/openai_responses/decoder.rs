//! The rules that the decoder of responses keeps, one test each.

use std::slice;

use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::FinishReason;
use serde_json::{Value, json};
use values::message::ContentPart;
use values::usage::Usage;

use super::support::{
    added, call_item, done, end, message_item, plain, read, response, stream, stream_text, text_delta, texts,
};
use crate::support::{Decoded, said};

fn class(outcome: &Decoded) -> ModelErrorClass {
    outcome.1.as_ref().unwrap_err().class
}

#[test]
fn a_completion_is_emitted_once_in_every_form() {
    let item = message_item("hello");
    let part = json!({"type": "output_text", "text": "hello", "annotations": []});
    let at = json!({"item_id": "msg_1", "output_index": 0, "content_index": 0});
    let with = |kind: &str, name: &str, value: Value| {
        let mut event = at.clone();
        event["type"] = json!(kind);
        event[name] = value;
        event
    };
    let opened = added(
        0,
        &json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []}),
    );
    let text_done = with("response.output_text.done", "text", json!("hello"));
    let part_done = with("response.content_part.done", "part", part);
    for events in [
        vec![
            opened.clone(),
            text_delta("hel"),
            text_delta("lo"),
            text_done.clone(),
            part_done.clone(),
            done(0, &item),
            end("completed", slice::from_ref(&item)),
        ],
        vec![end("completed", slice::from_ref(&item))],
        vec![done(0, &item), end("completed", &[])],
        vec![text_delta("hello"), end("completed", &[])],
        vec![text_delta("hel"), end("completed", slice::from_ref(&item))],
        vec![text_delta("hel"), text_done, end("completed", &[])],
        vec![opened, part_done, end("completed", &[])],
        vec![
            text_delta("hello"),
            done(0, &item),
            json!({"type": "response.done", "response": response("completed", &[])}),
        ],
        vec![text_delta("hello"), json!({"type": "response.completed"})],
    ] {
        let (emitted, answer) = stream(&events);
        assert_eq!(texts(&emitted), "hello", "{events:?}");
        let answer = answer.unwrap();
        assert_eq!(answer.content, [ContentPart::text("hello")], "{events:?}");
        assert_eq!(answer.finish_reason, FinishReason::Stop, "{events:?}");
    }
    let (emitted, answer) = plain(&response("completed", &[item]));
    let answer = answer.unwrap();
    assert_eq!(
        (emitted, answer.content),
        (vec![said("hello")], vec![ContentPart::text("hello")])
    );
    assert_eq!(
        (answer.model.as_deref(), answer.response_id.as_deref()),
        (Some("m-1"), Some("resp_1"))
    );
}

#[test]
fn the_end_has_a_reason() {
    let incomplete = |reason: Value| {
        let mut response = response("incomplete", &[message_item("hel")]);
        response["incomplete_details"] = json!({"reason": reason});
        response
    };
    let mut strange = response("completed", &[]);
    strange["status"] = json!("paused");
    let mut unsaid = response("completed", &[message_item("hello")]);
    unsaid["status"] = Value::Null;
    let refused =
        json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]});
    for (response, expected) in [
        (response("completed", &[message_item("hello")]), FinishReason::Stop),
        (unsaid, FinishReason::Stop),
        (
            response("completed", &[message_item("hello"), call_item("{}")]),
            FinishReason::ToolCalls,
        ),
        (response("completed", slice::from_ref(&refused)), FinishReason::Refusal),
        (
            response("completed", &[refused, call_item("{}")]),
            FinishReason::ToolCalls,
        ),
        (incomplete(json!("max_output_tokens")), FinishReason::Length),
        (incomplete(json!("content_filter")), FinishReason::ContentFilter),
    ] {
        let kind = response["status"].as_str().unwrap_or("completed");
        let event = json!({"type": format!("response.{kind}"), "response": response});
        for outcome in [plain(&response), stream(&[event])] {
            assert_eq!(outcome.1.unwrap().finish_reason, expected, "{response}");
        }
    }
    for (response, word) in [
        (incomplete(json!("lunch")), "ended its response with lunch"),
        (incomplete(Value::Null), "ended its response with incomplete"),
        (strange, "ended its response with paused"),
        (response("completed", &[]), "has no text and no tool call"),
    ] {
        // An unknown kind of end can't be known as one in a stream.
        let event = json!({"type": "response.completed", "response": response});
        for outcome in [plain(&response), stream(&[event])] {
            let message = outcome.1.unwrap_err().message;
            assert!(message.contains(word), "{message}");
        }
    }
}

#[test]
fn an_answer_without_its_end_is_truncated() {
    for events in [
        vec![],
        vec![json!({"type": "response.created", "response": response("in_progress", &[])})],
        vec![text_delta("hello"), done(0, &message_item("hello"))],
    ] {
        assert_eq!(class(&stream(&events)), ModelErrorClass::Truncated, "{events:?}");
        let text = stream_text(&events) + "data: [DONE]\n\n";
        let outcome = read(text.as_bytes());
        assert_eq!(class(&outcome), ModelErrorClass::Truncated, "{events:?}");
    }
    for text in [
        "",
        "\n\n",
        ": only a comment\n\n",
        "{\"output\": [",
        "data: {\"type\": \"respo",
    ] {
        let outcome = read(text.as_bytes());
        assert_eq!(class(&outcome), ModelErrorClass::Truncated, "{text:?}");
    }
    let unterminated = format!("data: {}", end("completed", &[message_item("hello")]));
    let outcome = read(unterminated.as_bytes());
    assert!(outcome.1.is_ok(), "a last event without its blank line counts");
}

#[test]
fn a_body_that_is_no_answer_is_a_protocol_error() {
    for text in [
        "{}",
        "[]",
        "nonsense",
        r#"{"output": "no"}"#,
        r#"{"choices": [{"message": {"content": "hello"}}]}"#,
        "data: {}\n\n",
        "data: nonsense\n\n",
        "data: [1]\n\n",
        "data: {\"choices\": [{\"delta\": {\"content\": \"hello\"}}]}\n\ndata: [DONE]\n\n",
    ] {
        let outcome = read(text.as_bytes());
        assert_eq!(class(&outcome), ModelErrorClass::Protocol, "{text}");
    }
    let nameless = json!({"type": "function_call", "call_id": "c", "arguments": "{}"});
    let outcome = plain(&response("completed", &[nameless]));
    assert_eq!(outcome.1.unwrap_err().message, "a tool call has no name");
}

#[test]
fn an_error_ends_the_answer_in_every_form() {
    use ModelErrorClass as C;
    let error = json!({"code": "rate_limit_exceeded", "message": "slower"});
    let mut failed = response("failed", &[]);
    failed["error"] = error.clone();
    failed["instructions"] = json!("hidden");
    let flat = json!({"type": "error", "code": "rate_limit_exceeded", "message": "slower", "param": null, "sequence_number": 3});
    for last in [
        json!({"type": "response.failed", "response": failed}),
        json!({"type": "error", "error": error}),
        json!({"type": "response.error", "error": error}),
        json!({"error": error}),
        flat,
    ] {
        let (emitted, end) = stream(&[text_delta("hel"), last.clone(), end("completed", &[])]);
        let end = end.unwrap_err();
        assert_eq!(emitted, [said("hel")], "{last}");
        assert_eq!((end.class, end.message.as_str()), (C::RateLimit, "slower"), "{last}");
        assert!(!end.body.unwrap().contains("hidden"), "{last}");
    }
    let named = "event: error\ndata: {\"code\": \"rate_limit_exceeded\", \"message\": \"slower\"}\n\n";
    assert_eq!(class(&read(named.as_bytes())), C::RateLimit);
    let flat = json!({"object": "error", "code": "rate_limit_exceeded", "message": "slower"});
    for body in [failed, json!({"error": error}), flat] {
        let end = plain(&body).1.unwrap_err();
        assert_eq!((end.class, end.message.as_str()), (C::RateLimit, "slower"), "{body}");
    }
    let cancelled = plain(&response("cancelled", &[])).1.unwrap_err();
    assert_eq!(
        (cancelled.class, cancelled.message.as_str()),
        (C::Server, "the provider cancelled its response")
    );
}

#[test]
fn events_that_are_not_known_are_passed_over() {
    let (emitted, answer) = stream(&[
        json!({"type": "response.created", "response": {"id": "resp_0", "model": "m-0"}}),
        json!({"type": "keepalive"}),
        json!({"type": "codex.rate_limits", "plan": "x"}),
        json!({"type": "response.something.new", "delta": "no"}),
        json!({"type": "response.output_audio.delta", "delta": "AAAA"}),
        json!({"type": "response.output_text.delta", "delta": {"text": "no"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": "no"}),
        text_delta("hello"),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": null}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "msg_1", "delta": "no"}),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ]);
    let answer = answer.unwrap();
    assert_eq!(
        (emitted, answer.content),
        (vec![said("hello")], vec![ContentPart::text("hello")])
    );
    assert_eq!(
        (answer.model.as_deref(), answer.response_id.as_deref()),
        (Some("m-0"), Some("resp_0"))
    );
}

#[test]
fn usage_is_emitted_before_the_end() {
    let mut response = response("completed", &[message_item("hello")]);
    response["usage"] = json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 6}, "output_tokens": 4,
                               "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 14});
    let (emitted, answer) = plain(&response);
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 4,
        cache_read_tokens: 6,
        reasoning_tokens: 3,
        total_tokens: 14,
        ..Usage::default()
    };
    assert_eq!(
        (emitted, answer.unwrap().usage),
        (vec![said("hello"), ModelEvent::Usage(usage)], usage)
    );
}

#[test]
fn refusals_and_reasoning_are_emitted_as_such() {
    let event = |kind: &str, fields: Value| {
        let mut event = fields;
        event["type"] = json!(format!("response.{kind}"));
        event
    };
    let summary = |index: u64, delta: &str| {
        event(
            "reasoning_summary_text.delta",
            json!({"item_id": "rs_1", "output_index": 0, "summary_index": index, "delta": delta}),
        )
    };
    let (emitted, answer) = stream(&[
        added(0, &json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        summary(0, "a"),
        summary(0, "b"),
        summary(1, "c"),
        event(
            "reasoning_summary_text.done",
            json!({"item_id": "rs_1", "output_index": 0, "summary_index": 1, "text": "cd"}),
        ),
        event(
            "reasoning_text.delta",
            json!({"item_id": "rs_2", "output_index": 1, "content_index": 0, "delta": "e"}),
        ),
        event(
            "refusal.delta",
            json!({"item_id": "m", "output_index": 2, "content_index": 0, "delta": "I "}),
        ),
        event(
            "refusal.done",
            json!({"item_id": "m", "output_index": 2, "content_index": 0, "refusal": "I won't"}),
        ),
        end("completed", &[]),
    ]);
    let thought = |text: &str| ModelEvent::ReasoningDelta { text: text.to_owned() };
    let refusal = |text: &str| ModelEvent::RefusalDelta { text: text.to_owned() };
    assert_eq!(
        emitted,
        [
            thought("a"),
            thought("b"),
            thought("\n\nc"),
            thought("d"),
            thought("e"),
            refusal("I "),
            refusal("won't")
        ]
    );
    let answer = answer.unwrap();
    let words: Vec<_> = answer
        .content
        .iter()
        .map(|part| match part {
            ContentPart::Reasoning(part) => (part.text.as_str(), part.id.as_deref()),
            ContentPart::Refusal { text } => (text.as_str(), None),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        words,
        [("ab\n\ncd", Some("rs_1")), ("e", Some("rs_2")), ("I won't", None)]
    );
    assert_eq!(answer.finish_reason, FinishReason::Refusal);
}

#[test]
fn sources_are_stored_verbatim() {
    let source = r#"{"type":"url_citation", "url":"https://example.org","start_index":0,"end_index":3}"#;
    let item = format!(
        r#"{{"type":"message","id":"msg_1","role":"assistant","content":[{{"type":"output_text","text":"see","annotations":[{source}]}}]}}"#
    );
    let whole = format!(r#"{{"type":"response.completed","response":{{"status":"completed","output":[{item}]}}}}"#);
    let emitted = format!(
        r#"{{"type":"response.output_text.annotation.added","item_id":"msg_1","output_index":0,"content_index":0,"annotation_index":0,"annotation":{source}}}"#
    );
    let empty = end("completed", &[]).to_string();
    let delta = text_delta("see").to_string();
    for events in [
        vec![&delta, &emitted, &empty],
        vec![&whole],
        vec![&delta, &emitted, &whole],
    ] {
        let text: String = events.into_iter().flat_map(|event| ["data: ", event, "\n\n"]).collect();
        let content = read(text.as_bytes()).1.unwrap().content;
        let [ContentPart::Text(part)] = content.as_slice() else {
            panic!("{content:?}")
        };
        let sources: Vec<_> = part.citations.iter().map(|source| source.0.as_str()).collect();
        assert_eq!((part.text.as_str(), sources), ("see", vec![source]));
    }
}
