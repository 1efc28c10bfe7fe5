//! Streams and responses of random runs, and of some that are not random.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json, to_value};

use super::arbitrary::{CallPlan, End, Kind, Made, Plan, RUN, StepPlan, TIME, Takeover, event, plans, summary};
use super::{ResponseStream, WireEvent, response_of, stream_of_stored};
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::turn::Turn;
use crate::run::read::{AnsweredStep, RunMessages};
use agent::record::RunEvent;

proptest! {
    #[test]
    fn a_stream_is_in_order_and_ends_with_the_response_that_is_stored(plan in plans()) {
        let Made { events, stored } = plan.make();
        let sent = stream(&plan, &events);
        let shown = check(&sent, plan.takeover.is_some());
        let turn = Turn::of_stored(&stored);
        let response = response_of(&stored.record, &turn, &plan.echo(), &plan.settings());
        prop_assert_eq!(unsealed(shown), unsealed(to_value(response).unwrap()));
    }

    #[test]
    fn a_stream_of_what_is_stored_ends_alike(plan in plans()) {
        let Made { events, stored } = plan.make();
        let sent = stream(&plan, &events);
        let turn = Turn::of_stored(&stored);
        let again = stream_of_stored(&stored.record, &turn, &plan.echo(), &plan.settings());
        let again = values(&again);
        prop_assert_eq!(unsealed(check(&again, false)), unsealed(check(&sent, plan.takeover.is_some())));
        prop_assert_eq!(&again[0], &sent[0]);
    }

    #[test]
    fn a_replay_is_the_same_to_the_byte(plan in plans()) {
        // Each seal is another text.
        let plan = Plan { seals: false, ..plan };
        let events = plan.make().events;
        let bytes = || {
            let mut stream = ResponseStream::new(plan.settings(), plan.echo());
            let sent: Vec<_> = events.iter().flat_map(|event| stream.read(event)).collect();
            serde_json::to_vec(&sent).unwrap()
        };
        prop_assert_eq!(bytes(), bytes());
    }
}

fn stream(plan: &Plan, events: &[RunEvent]) -> Vec<Value> {
    let mut stream = ResponseStream::new(plan.settings(), plan.echo());
    let sent: Vec<_> = events.iter().flat_map(|event| stream.read(event)).collect();
    assert!(
        sent.iter()
            .all(|event| to_value(event).unwrap()["type"] == event.name())
    );
    values(&sent)
}

fn values(events: &[WireEvent]) -> Vec<Value> {
    events.iter().map(|event| to_value(event).unwrap()).collect()
}

/// Replaces seals, which are random.
fn unsealed(mut response: Value) -> Value {
    for item in response["output"].as_array_mut().unwrap() {
        if let Some(sealed) = item.get_mut("encrypted_content") {
            *sealed = json!("sealed");
        }
    }
    response
}

/// Checks the order of the events as strict clients do. Returns the response of the last.
fn check(events: &[Value], is_taken_over: bool) -> Value {
    let count = events.len();
    let mut items: Vec<Item> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], index);
        let kind = event["type"].as_str().unwrap();
        if let Some(response) = event.get("response") {
            let is_edge = index < 3 || index + 1 == count;
            assert!(is_edge && response["id"] == events[0]["response"]["id"], "{event}");
        } else {
            read_item_event(&mut items, kind, event);
        }
    }
    assert_eq!(
        (&events[0]["type"], &events[0]["response"]["output"]),
        (&json!("response.created"), &json!([]))
    );
    let last = &events[count - 1];
    let ends = ["response.completed", "response.incomplete", "response.failed"];
    assert!(ends.contains(&last["type"].as_str().unwrap()));
    let response = last["response"].clone();
    let mut before = None;
    for item in response["output"].as_array().unwrap() {
        let index = items.iter().position(|shown| shown.id == item["id"]).unwrap();
        assert!(before < Some(index), "the order of {item}");
        before = Some(index);
        if !is_taken_over {
            assert_eq!(items[index].done.as_ref(), Some(item));
        }
    }
    assert!(items.iter().all(|item| item.done.is_some()), "an item has not ended");
    response
}

/// An item as a client collects it.
struct Item {
    id: Value,
    kind: Value,
    text: BTreeMap<&'static str, String>,
    done: Option<Value>,
}

fn read_item_event(items: &mut Vec<Item>, kind: &str, event: &Value) {
    let index = usize::try_from(event["output_index"].as_u64().unwrap()).unwrap();
    if kind == "response.output_item.added" {
        let item = &event["item"];
        assert!(
            items.len() == index && items.iter().all(|other| other.id != item["id"]),
            "{event}"
        );
        items.push(Item {
            id: item["id"].clone(),
            kind: item["type"].clone(),
            text: BTreeMap::new(),
            done: None,
        });
        return;
    }
    let item = &mut items[index];
    assert_eq!(item.done, None, "{event} after the end");
    if kind == "response.output_item.done" {
        assert_eq!((&event["item"]["id"], &event["item"]["type"]), (&item.id, &item.kind));
        item.done = Some(event["item"].clone());
        return;
    }
    assert_eq!(event["item_id"], item.id);
    let streamed = if kind.contains("arguments") {
        "arguments"
    } else {
        "words"
    };
    if let Some(delta) = event.get("delta") {
        item.text.entry(streamed).or_default().push_str(delta.as_str().unwrap());
    }
    let whole = ["text", "refusal", "arguments"]
        .into_iter()
        .find_map(|field| event.get(field));
    if let Some(whole) = whole {
        assert_eq!(item.text[streamed], whole.as_str().unwrap());
    }
}

fn plan(steps: Vec<StepPlan>, end: End) -> Plan {
    Plan {
        steps,
        end,
        takeover: None,
        is_json: false,
        seals: false,
        hides_calls: false,
    }
}

fn step(words: &[(Kind, &str)], calls: &[CallPlan]) -> StepPlan {
    StepPlan {
        words: words.iter().map(|(kind, word)| (*kind, (*word).to_owned())).collect(),
        calls: calls.to_vec(),
        is_reversed: true,
    }
}

fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap().trim_start_matches("response."))
        .collect()
}

fn output(events: &[Value]) -> &Vec<Value> {
    events[events.len() - 1]["response"]["output"].as_array().unwrap()
}

#[test]
fn a_response_has_every_field_of_the_specification() {
    let made = plan(vec![step(&[(Kind::Text, "a")], &[])], End::Completed).make();
    let settings = plan(Vec::new(), End::Completed).settings();
    let turn = Turn::of_stored(&made.stored);
    let response = to_value(response_of(&made.stored.record, &turn, &Echo::default(), &settings)).unwrap();
    let fields = "id object created_at completed_at status incomplete_details model previous_response_id instructions \
                  output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty \
                  frequency_penalty top_logprobs temperature reasoning usage max_output_tokens max_tool_calls store \
                  background service_tier metadata safety_identifier prompt_cache_key";
    for field in fields.split_whitespace() {
        assert!(response.get(field).is_some(), "{field}");
    }
    // A run that another interface has started is named by its agent.
    assert_eq!(
        (&response["model"], &response["object"]),
        (&json!("a"), &json!("response"))
    );
    assert_eq!(
        response["usage"]["input_tokens_details"],
        json!({"cached_tokens": 0, "cache_write_tokens": 0})
    );
    let message = &response["output"][0];
    assert_eq!(
        (&message["phase"], &message["status"]),
        (&json!("final_answer"), &json!("completed"))
    );
    assert_eq!(
        message["content"],
        json!([{"type": "output_text", "text": "a", "annotations": [], "logprobs": []}])
    );
    assert_eq!(response["agent_runtime"]["session_id"], RUN);
}

#[test]
fn words_arrive_at_once_and_calls_when_they_have_ended() {
    let calls = [CallPlan::Succeeds, CallPlan::Client];
    let plan = plan(
        vec![step(&[(Kind::Reasoning, "a"), (Kind::Text, "b")], &calls)],
        End::Completed,
    );
    let sent = stream(&plan, &plan.make().events);
    assert_eq!(
        types(&sent),
        [
            "created",
            "in_progress",
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "mcp_call.in_progress",
            "mcp_call_arguments.delta",
            "mcp_call_arguments.done",
            "mcp_call.completed",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ]
    );
    let output = output(&sent);
    assert_eq!(
        (&output[1]["phase"], &output[2]["output"]),
        (&json!("commentary"), &json!("good"))
    );
    assert_eq!(
        (&output[3]["call_id"], &output[3]["arguments"]),
        (&json!("call_1"), &json!(r#"{"x":1}"#))
    );
}

#[test]
fn json_is_one_message_and_a_corrected_one_is_not_shown() {
    let words = [(Kind::Text, "a"), (Kind::Reasoning, "b"), (Kind::Text, "c")];
    let mut plan = plan(vec![step(&words, &[]), step(&words, &[])], End::Completed);
    plan.is_json = true;
    let sent = stream(&plan, &plan.make().events);
    let shown: Vec<_> = output(&sent).iter().map(|item| &item["type"]).collect();
    assert_eq!(shown, ["reasoning", "reasoning", "message"]);
    let added = sent.iter().find(|event| event["item"]["type"] == "message").unwrap();
    assert_eq!(added["item"]["phase"], "final_answer");
    assert_eq!(output(&sent)[2]["content"][0]["text"], "ac");
}

#[test]
fn a_lost_step_ends_as_incomplete_and_its_ids_are_not_used_again() {
    let mut plan = plan(vec![step(&[(Kind::Text, "a")], &[])], End::Completed);
    plan.takeover = Some(Takeover::Again);
    let sent = stream(&plan, &plan.make().events);
    let done: Vec<_> = sent
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .collect();
    let status: Vec<_> = done.iter().map(|event| &event["item"]["status"]).collect();
    assert_eq!(status, ["incomplete", "completed"]);
    assert_ne!(done[0]["item"]["id"], done[1]["item"]["id"]);
    assert_eq!(output(&sent)[..], [done[1]["item"].clone()]);
}

#[test]
fn the_end_of_a_run_is_the_status_of_its_response() {
    for (end, event, status, reason) in [
        (End::Completed, "completed", "completed", json!(null)),
        (End::Cut, "incomplete", "incomplete", json!("max_output_tokens")),
        (End::Stopped, "incomplete", "incomplete", json!("steps_limit_reached")),
        (End::Failed, "failed", "failed", json!(null)),
        (End::Cancelled, "incomplete", "cancelled", json!(null)),
    ] {
        let plan = plan(vec![step(&[(Kind::Text, "a")], &[])], end);
        let sent = stream(&plan, &plan.make().events);
        let response = &sent[sent.len() - 1]["response"];
        assert_eq!(
            (types(&sent)[sent.len() - 1], &response["status"]),
            (event, &json!(status))
        );
        assert_eq!(response["incomplete_details"]["reason"], reason);
        let code = response["error"].get("code");
        assert_eq!(code, (end == End::Failed).then_some(&json!("hook_failed")));
        assert_eq!(output(&sent).len(), usize::from(end != End::Cancelled));
    }
}

#[test]
fn a_run_that_is_cancelled_in_the_queue_has_a_whole_stream() {
    let mut cancelled = summary("cancelled");
    cancelled["output"] = json!([]);
    let mut plan = plan(Vec::new(), End::Cancelled);
    plan.takeover = Some(Takeover::Again);
    let sent = stream(&plan, &[event(1, "run.cancelled", &cancelled)]);
    assert_eq!(types(&sent), ["created", "queued", "in_progress", "incomplete"]);
    check(&sent, false);
}

/// The run before has left `call_0` and `call_1` open: the service has executed the first, and the
/// caller the second.
#[test]
fn an_approved_call_names_its_request_and_results_of_the_caller_are_no_output() {
    let calls = [CallPlan::Approval, CallPlan::Client];
    let first = plan(vec![step(&[(Kind::Text, "a")], &calls)], End::Completed);
    let made = first.make();
    let sent = stream(&first, &made.events);
    let request = &output(&sent)[1];
    assert_eq!(request["type"], "mcp_approval_request");

    let mut record = summary("completed");
    record["output"] = json!([]);
    let answered = answered_step(&made);
    let echo = Echo {
        previous_response_id: Some(format!("resp_{}", RUN.replace('-', ""))),
        ..Echo::default()
    };
    let events = answered_events(&answered["step_id"], &record);
    let stored = RunMessages {
        record: serde_json::from_value(record).unwrap(),
        answered: Some(AnsweredStep {
            step: serde_json::from_value(answered).unwrap(),
            open_calls: vec!["call_0".to_owned(), "call_1".to_owned()],
        }),
        input: Vec::new(),
        steps: Vec::new(),
    };
    let turn = Turn::of_stored(&stored);
    let response = to_value(response_of(&stored.record, &turn, &echo, &first.settings())).unwrap();
    let calls = response["output"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["approval_request_id"]), (1, &request["id"]));
    let mut stream = ResponseStream::new(first.settings(), echo);
    let sent: Vec<_> = events.iter().flat_map(|event| stream.read(event)).collect();
    assert_eq!(check(&values(&sent), false), response);
}

/// The only step of a run, as the run stores it that has answered its calls.
fn answered_step(made: &Made) -> Value {
    let mut step = to_value(&made.stored.steps[0]).unwrap();
    let execution = |call: &str, verdict: &str| {
        json!({
            "id": RUN, "call_id": call, "name": "f", "is_error": false, "verdict": verdict, "started_at": TIME,
            "completed_at": TIME, "duration_ms": 1,
        })
    };
    step["tool_executions"] = json!([execution("call_0", "executed"), execution("call_1", "supplied")]);
    let result = |call: &str| {
        let content = json!([{"type": "text", "text": "good"}]);
        json!({"type": "tool_result", "call_id": call, "name": "f", "content": content})
    };
    let content = [result("call_0"), result("call_1")];
    let results = json!({"id": RUN, "role": "tool", "content": content, "created_at": TIME});
    step["messages"].as_array_mut().unwrap().push(results);
    step
}

/// The events of the run that has answered the calls of a step. The calls end in another order.
fn answered_events(step_id: &Value, record: &Value) -> Vec<RunEvent> {
    let ended = |index: usize, verdict: &str| {
        json!({
            "step_number": 1, "call_id": format!("call_{index}"), "name": "f",
            "arguments": format!(r#"{{"x":{index}}}"#), "content": [{"type": "text", "text": "good"}],
            "is_error": false, "verdict": verdict, "duration_ms": 1,
        })
    };
    let begun = json!({"step_number": 1, "step_id": step_id, "started_at": TIME});
    let completed = json!({
        "step_number": 1, "step_id": step_id, "step_type": "tool_execution", "finish_reason": null, "usage": {},
        "duration_ms": 1,
    });
    vec![
        event(1, "run.started", &summary("running")),
        event(2, "step.started", &begun),
        event(3, "tool_call.completed", &ended(1, "supplied")),
        event(4, "tool_call.completed", &ended(0, "executed")),
        event(5, "step.completed", &completed),
        event(6, "run.completed", record),
    ]
}
