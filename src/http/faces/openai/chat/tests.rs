//! Completions of random runs, and of some that are not random.

use proptest::prelude::*;
use serde_json::{Value, json, to_value};

use super::chunks::ChatChunk;
use super::{ChatCompletion, ChatReader};
use crate::http::faces::turn::Turn;
use crate::http::faces::turn::arbitrary::{CallPlan, End, Kind, Made, Plan, StepPlan, Takeover, plans};

proptest! {
    #[test]
    fn chunks_add_up_to_the_completion(plan in plans(), includes_usage in any::<bool>()) {
        let plan = completed(plan);
        let Made { events, stored } = plan.make();
        let turn = Turn::of_stored(&stored);
        let completion = ChatCompletion::new("a".to_owned(), &stored.record, &turn, plan.is_json);
        let mut completion = to_value(completion).unwrap();
        if !includes_usage {
            completion["usage"] = Value::Null;
        }
        let reader = || ChatReader::new("a".to_owned(), includes_usage, plan.is_json);
        let mut live = reader();
        let chunks: Vec<_> = events.iter().flat_map(|event| live.read(event)).collect();
        prop_assert_eq!(&folded(&values(&chunks), includes_usage), &completion);
        let chunks = reader().read_stored(&stored);
        prop_assert_eq!(&folded(&values(&chunks), includes_usage), &completion);
    }
}

/// Makes a plan of a run with a completion, whose client has read no step that was lost.
fn completed(plan: Plan) -> Plan {
    let end = match plan.end {
        End::Failed | End::Unpublished | End::Cancelled => End::Completed,
        end => end,
    };
    let takeover = plan
        .takeover
        .filter(|takeover| matches!(takeover, Takeover::Pending(_)));
    Plan { end, takeover, ..plan }
}

fn values(chunks: &[ChatChunk]) -> Vec<Value> {
    chunks.iter().map(|chunk| to_value(chunk).unwrap()).collect()
}

/// Adds chunks up to a completion, and checks their form.
fn folded(chunks: &[Value], includes_usage: bool) -> Value {
    let (chunks, usage) = match chunks {
        [chunks @ .., last] if includes_usage => {
            assert_eq!(last["choices"], json!([]));
            (chunks, last["usage"].clone())
        }
        chunks => (chunks, Value::Null),
    };
    let first = &chunks[0];
    let mut message = json!({"content": null, "refusal": null});
    for (index, chunk) in chunks.iter().enumerate() {
        for field in ["id", "created", "model"] {
            assert_eq!(chunk[field], first[field]);
        }
        let choices = chunk["choices"].as_array().unwrap();
        assert_eq!((choices.len(), chunk.get("usage")), (1, None), "{chunk}");
        let delta = choices[0]["delta"].as_object().unwrap();
        assert_eq!(delta.contains_key("role"), index == 0, "{chunk}");
        let ends = !choices[0]["finish_reason"].is_null();
        assert_eq!(ends, index + 1 == chunks.len(), "{chunk}");
        for (field, value) in delta {
            add(&mut message[field], value);
        }
    }
    let reason = &chunks[chunks.len() - 1]["choices"][0]["finish_reason"];
    json!({
        "id": first["id"], "object": "chat.completion", "created": first["created"], "model": first["model"],
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}], "usage": usage,
    })
}

/// Adds a delta to a field of a message.
fn add(known: &mut Value, delta: &Value) {
    let Value::Array(calls) = delta else {
        *known = json!(known.as_str().unwrap_or_default().to_owned() + delta.as_str().unwrap());
        return;
    };
    for call in calls {
        let mut call = call.clone();
        let index = call.as_object_mut().unwrap().remove("index");
        let mut calls = known.as_array().cloned().unwrap_or_default();
        assert_eq!(index, Some(json!(calls.len())));
        calls.push(call);
        *known = json!(calls);
    }
}

fn step(words: &[(Kind, &str)], calls: &[CallPlan]) -> StepPlan {
    StepPlan {
        words: words.iter().map(|(kind, word)| (*kind, (*word).to_owned())).collect(),
        calls: calls.to_vec(),
        ..StepPlan::default()
    }
}

/// Returns the deltas of a run of steps.
fn deltas(steps: Vec<StepPlan>, is_json: bool) -> Vec<Value> {
    let plan = Plan {
        answers: Vec::new(),
        steps,
        end: End::Completed,
        unfinished: None,
        takeover: None,
        is_json,
    };
    let mut reader = ChatReader::new("a".to_owned(), false, is_json);
    let chunks: Vec<_> = plan.make().events.iter().flat_map(|event| reader.read(event)).collect();
    let values = values(&chunks).into_iter();
    values.map(|mut chunk| chunk["choices"][0]["delta"].take()).collect()
}

#[test]
fn words_arrive_at_once_and_calls_at_the_end() {
    let first = step(&[(Kind::Text, "a")], &[CallPlan::Succeeds]);
    let second = step(&[(Kind::Reasoning, "h"), (Kind::Text, "b")], &[CallPlan::Client]);
    let function = json!({"name": "f", "arguments": r#"{"x": 0}"#});
    let call = json!({"index": 0, "id": "call_0", "type": "function", "function": function});
    assert_eq!(
        deltas(vec![first, second], false),
        [
            json!({"role": "assistant"}),
            json!({"content": "a"}),
            json!({"reasoning_content": "h"}),
            json!({"content": "\n\nb"}),
            json!({"tool_calls": [call]}),
            json!({}),
        ]
    );
}

#[test]
fn json_is_the_final_response_alone() {
    let first = step(&[(Kind::Text, "a")], &[CallPlan::Succeeds]);
    let corrected = step(&[(Kind::Text, "b")], &[]);
    let last = step(&[(Kind::Reasoning, "h"), (Kind::Text, "cc")], &[]);
    let expected = [
        json!({"role": "assistant"}),
        json!({"reasoning_content": "h"}),
        json!({"content": "cc"}),
        json!({}),
    ];
    assert_eq!(deltas(vec![first, corrected, last], true), expected);
}
