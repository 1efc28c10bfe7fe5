//! Streams and responses of random runs, and of some that are not random.

use std::sync::Arc;

use axum::http::StatusCode;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json, to_value};

use super::arbitrary::{Case, cases};
use super::lint::{check, types};
use super::{ResponseStream, WireEvent, response_of, stream_of_stored};
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::failure::Failure;
use crate::http::faces::turn::Turn;
use crate::http::faces::turn::arbitrary::{
    CallPlan, End, Kind, Made, Plan, RUN, StepPlan, TIME, Takeover, event, summary,
};
use crate::run::read::{AnsweredStep, RunMessages};
use agent::record::RunEvent;
use values::session::hash_arguments;

proptest! {
    #[test]
    fn a_stream_is_in_order_and_ends_with_the_response_that_is_stored(case in cases()) {
        let Made { events, stored } = case.run.make();
        let shown = check(&case, &stream(&case, &events));
        let turn = Turn::of_stored(&stored);
        let response = response_of(&stored.record, &turn, &case.echo(), &case.settings());
        prop_assert_eq!(shown, to_value(response).unwrap());
    }

    #[test]
    fn a_stream_shows_nothing_that_the_response_does_not_have(case in cases()) {
        let run = Plan { takeover: None, unfinished: None, ..case.run };
        let case = Case { run, ..case };
        let sent = stream(&case, &case.run.make().events);
        if case.run.end != End::Cancelled {
            let added = sent.iter().filter(|event| event["type"] == "response.output_item.added");
            prop_assert_eq!(added.count(), output(&sent).len());
        }
    }

    #[test]
    fn a_stream_of_what_is_stored_ends_alike(case in cases()) {
        let Made { events, stored } = case.run.make();
        let sent = stream(&case, &events);
        let turn = Turn::of_stored(&stored);
        let again = values(&stream_of_stored(&stored.record, &turn, &case.echo(), &case.settings()));
        prop_assert_eq!(check(&case, &again), check(&case, &sent));
        prop_assert_eq!(&again[0], &sent[0]);
    }

    #[test]
    fn a_replay_is_the_same_to_the_byte(case in cases()) {
        let events = case.run.make().events;
        let bytes = || {
            let mut stream = new_stream(&case, case.echo());
            let sent: Vec<_> = events.iter().flat_map(|event| stream.read(event)).collect();
            serde_json::to_vec(&sent).unwrap()
        };
        prop_assert_eq!(bytes(), bytes());
    }

    #[test]
    fn a_reader_that_is_dropped_gets_a_failed_response(case in cases(), at in any::<Index>()) {
        let events = case.run.make().events;
        let failure = Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "stream_dropped", "too slow");
        let mut stream = new_stream(&case, case.echo());
        let mut sent: Vec<_> = events[..at.index(events.len())].iter().flat_map(|event| stream.read(event)).collect();
        sent.extend(stream.drop_reader(failure, None));
        let response = check(&case, &values(&sent));
        prop_assert_eq!(&response["status"], "failed");
        prop_assert_eq!(&response["error"]["code"], "stream_dropped");
        // A client that has some events gets the end alone.
        let rest = values(&new_stream(&case, case.echo()).drop_reader(failure, Some(7)));
        prop_assert_eq!(types(&rest), ["failed"]);
        prop_assert_eq!(&rest[0]["sequence_number"], 8);
    }
}

fn new_stream(case: &Case, echo: Arc<Echo>) -> ResponseStream {
    let run = serde_json::from_value(summary("running")).unwrap();
    ResponseStream::new(case.settings(), echo, run)
}

fn stream(case: &Case, events: &[RunEvent]) -> Vec<Value> {
    let mut stream = new_stream(case, case.echo());
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

fn case(steps: Vec<StepPlan>, end: End) -> Case {
    Case::new(Plan {
        answers: Vec::new(),
        steps,
        end,
        unfinished: None,
        takeover: None,
        is_json: false,
    })
}

fn step(words: &[(Kind, &str)], calls: &[CallPlan]) -> StepPlan {
    StepPlan {
        words: words.iter().map(|(kind, word)| (*kind, (*word).to_owned())).collect(),
        calls: calls.to_vec(),
        is_reversed: true,
        ..StepPlan::default()
    }
}

fn output(events: &[Value]) -> &Vec<Value> {
    events[events.len() - 1]["response"]["output"].as_array().unwrap()
}

#[test]
fn a_response_has_every_field_of_the_specification() {
    let case = case(vec![step(&[(Kind::Text, "a")], &[])], End::Completed);
    let stored = case.run.make().stored;
    let turn = Turn::of_stored(&stored);
    let response = to_value(response_of(&stored.record, &turn, &Arc::default(), &case.settings())).unwrap();
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
    let case = case(
        vec![step(&[(Kind::Reasoning, "a"), (Kind::Text, "b")], &calls)],
        End::Completed,
    );
    let sent = stream(&case, &case.run.make().events);
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
        (&json!("call_1"), &json!(r#"{"x": 1}"#)),
        "as the model wrote them"
    );
    assert_eq!(output[2]["arguments"], r#"{"x": 0}"#);
}

/// Returns the items of a stream whose client includes encrypted reasoning: the type of each, the
/// text of a summary, and whether it has encrypted reasoning.
fn sealed_items(steps: Vec<StepPlan>) -> Vec<(String, Value, bool)> {
    let mut case = case(steps, End::Completed);
    case.seals = true;
    let sent = stream(&case, &case.run.make().events);
    check(&case, &sent);
    let item = |item: &Value| {
        let (kind, sealed) = (item["type"].as_str().unwrap(), &item["encrypted_content"]);
        (kind.to_owned(), item["summary"][0]["text"].clone(), sealed.is_string())
    };
    output(&sent).iter().map(item).collect()
}

#[test]
fn marks_come_before_the_calls_with_reasoning_at_the_beginning_or_after_the_words() {
    let item = |kind: &str, text: Value, is_sealed| (kind.to_owned(), text, is_sealed);
    let (said, calls) = ([(Kind::Reasoning, "a"), (Kind::Text, "b")], [CallPlan::Client]);
    let thought = item("reasoning", json!("a"), false);
    let marked = item("reasoning", json!("a"), true);
    let message = item("message", Value::Null, false);
    let marks = item("reasoning", Value::Null, true);
    let call = item("function_call", Value::Null, false);
    // A step after which the run goes on has no marks.
    let found = sealed_items(vec![step(&said, &[CallPlan::Succeeds]), step(&said, &calls)]);
    let executed = item("mcp_call", Value::Null, false);
    let expected = [&thought, &message, &executed, &marked, &message, &call];
    assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    let twice = [said, said].concat();
    let found = sealed_items(vec![step(&twice, &calls)]);
    let expected = [&marked, &message, &thought, &message, &call];
    assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    let hidden = [(Kind::HiddenReasoning, "a"), (Kind::Text, "b")];
    let found = sealed_items(vec![step(&hidden, &calls)]);
    assert_eq!(found, [message.clone(), marks.clone(), call]);
    assert_eq!(
        sealed_items(vec![step(&hidden[..1], &[])]),
        std::slice::from_ref(&marks)
    );
    let late = [(Kind::Text, "b"), (Kind::Reasoning, "a")];
    let found = sealed_items(vec![step(&late, &[])]);
    assert_eq!(found, [message.clone(), thought.clone(), marks]);
    let found = sealed_items(vec![step(&[(Kind::PlainReasoning, "a"), (Kind::Text, "b")], &[])]);
    assert_eq!(found, [thought, message], "the provider needs nothing back");
}

#[test]
fn words_after_reasoning_whose_marks_may_come_are_held_back() {
    let said = [(Kind::Reasoning, "ab"), (Kind::Text, "c")];
    let mut case = case(vec![step(&said, &[]); 2], End::Completed);
    case.seals = true;
    let events = case.run.make().events;
    let mut stream = new_stream(&case, case.echo());
    let mut shown = |at: usize| types_of_items(&values(&stream.read(&events[at])));
    // The run and the step begin, then come the letters of the words.
    assert_eq!((shown(0), shown(1)), (Vec::new(), Vec::new()));
    assert_eq!(shown(2), ["added reasoning"]);
    assert_eq!((shown(3), shown(4)), (Vec::new(), Vec::new()));
    let rest: Vec<_> = (5..events.len()).map(shown).filter(|shown| !shown.is_empty()).collect();
    let ended = vec!["done reasoning", "added message", "done message"];
    assert_eq!(rest, [ended.clone(), vec!["added reasoning"], ended]);
}

#[test]
fn words_that_begin_a_step_are_not_held_back() {
    let said = [(Kind::Text, "ab"), (Kind::Reasoning, "c")];
    let mut case = case(vec![step(&said, &[])], End::Completed);
    case.seals = true;
    let events = case.run.make().events;
    let mut stream = new_stream(&case, case.echo());
    let shown = events.iter().map(|event| types_of_items(&values(&stream.read(event))));
    let shown: Vec<_> = shown.filter(|shown| !shown.is_empty()).collect();
    assert_eq!(
        shown[..2],
        [vec!["added message"], vec!["done message", "added reasoning"]]
    );
    assert_eq!(shown[2..], [["done reasoning", "added reasoning", "done reasoning"]]);
}

#[test]
fn json_that_begins_a_step_leaves_its_reasoning_without_marks() {
    let said = [(Kind::Text, "{"), (Kind::Reasoning, "a"), (Kind::Text, "}")];
    for end in [End::Completed, End::Stopped] {
        let mut case = case(vec![step(&said, &[])], end);
        (case.seals, case.run.is_json) = (true, true);
        let sent = stream(&case, &case.run.make().events);
        check(&case, &sent);
        let sealed = output(&sent)
            .iter()
            .rev()
            .map(|item| item["encrypted_content"].is_string());
        assert!(
            sealed.eq((0..output(&sent).len()).map(|from_end| from_end == 0)),
            "{end:?}"
        );
    }
}

/// Returns which items begin and end in events.
fn types_of_items(events: &[Value]) -> Vec<&'static str> {
    let name = |event: &Value| match (event["type"].as_str()?, event["item"]["type"].as_str()?) {
        ("response.output_item.added", "reasoning") => Some("added reasoning"),
        ("response.output_item.done", "reasoning") => Some("done reasoning"),
        ("response.output_item.added", _) => Some("added message"),
        _ => Some("done message"),
    };
    events.iter().filter_map(name).collect()
}

#[test]
fn a_message_ends_before_the_next_item_begins() {
    let words = [(Kind::Text, "a"), (Kind::Reasoning, "b"), (Kind::Text, "c")];
    let case = case(vec![step(&words, &[])], End::Completed);
    let sent = stream(&case, &case.run.make().events);
    check(&case, &sent);
    let phases: Vec<_> = output(&sent).iter().map(|item| item["phase"].clone()).collect();
    assert_eq!(phases, [json!("commentary"), Value::Null, json!("final_answer")]);
}

#[test]
fn arguments_that_a_hook_has_changed_are_shown_as_changed() {
    let case = case(vec![step(&[], &[CallPlan::Approval])], End::Completed);
    let stored = case.run.make().stored;
    let mut record = to_value(&stored.record).unwrap();
    record["open_calls"][0]["arguments"] = json!({"x": 7});
    record["open_calls"][0]["arguments_hash"] = to_value(hash_arguments(&json!({"x": 7}))).unwrap();
    let record = serde_json::from_value(record).unwrap();
    let turn = Turn::of_stored(&stored);
    let response = to_value(response_of(&record, &turn, &case.echo(), &case.settings())).unwrap();
    assert_eq!(response["output"][0]["arguments"], r#"{"x":7}"#);
}

#[test]
fn json_is_one_message_of_the_final_response_alone() {
    let words = [(Kind::Text, "a"), (Kind::Reasoning, "b"), (Kind::Text, "c")];
    let (called, said) = (step(&words, &[CallPlan::Succeeds]), step(&words, &[]));
    let mut case = case(vec![called, said.clone(), said], End::Completed);
    case.run.is_json = true;
    let sent = stream(&case, &case.run.make().events);
    let shown: Vec<_> = output(&sent).iter().map(|item| &item["type"]).collect();
    assert_eq!(shown, ["reasoning", "mcp_call", "reasoning", "reasoning", "message"]);
    let added = sent.iter().find(|event| event["item"]["type"] == "message").unwrap();
    assert_eq!(added["item"]["phase"], "final_answer");
    assert_eq!(output(&sent)[4]["content"][0]["text"], "ac");
}

#[test]
fn a_call_that_no_tool_of_the_agent_got_is_not_shown() {
    let called = step(&[], &[CallPlan::Refused, CallPlan::Fails]);
    let case = case(vec![called, step(&[(Kind::Text, "a")], &[])], End::Completed);
    let sent = stream(&case, &case.run.make().events);
    let shown: Vec<_> = output(&sent).iter().map(|item| &item["type"]).collect();
    assert_eq!(shown, ["mcp_call", "message"]);
}

#[test]
fn a_lost_step_ends_as_incomplete_and_its_ids_are_not_used_again() {
    let said = step(&[(Kind::Text, "a")], &[]);
    let mut case = case(vec![said.clone()], End::Completed);
    case.run.takeover = Some(Takeover::Again(0, vec![said]));
    let sent = stream(&case, &case.run.make().events);
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
        let case = case(vec![step(&[(Kind::Text, "a")], &[])], end);
        let sent = stream(&case, &case.run.make().events);
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
    let mut case = case(Vec::new(), End::Cancelled);
    case.run.takeover = Some(Takeover::Pending(0));
    let sent = stream(&case, &[event(1, "run.cancelled", &cancelled)]);
    check(&case, &sent);
    assert_eq!(types(&sent), ["created", "queued", "in_progress", "incomplete"]);
}

/// The run before has left `call_0` and `call_1` open: the service has executed the first, and the
/// caller the second.
#[test]
fn an_approved_call_names_its_request_and_results_of_the_caller_are_no_output() {
    let calls = [CallPlan::Approval, CallPlan::Client];
    let first = case(vec![step(&[(Kind::Text, "a")], &calls)], End::Completed);
    let made = first.run.make();
    let sent = stream(&first, &made.events);
    let request = &output(&sent)[1];
    assert_eq!(request["type"], "mcp_approval_request");

    let mut record = summary("completed");
    record["output"] = json!([]);
    let answered = answered_step(&made);
    // A request that continues a conversation does not name the response.
    let echo = Arc::<Echo>::default();
    let events = answered_events(&answered["step_id"], &record);
    let stored = RunMessages {
        record: serde_json::from_value(record).unwrap(),
        answered: Some(AnsweredStep {
            run_id: serde_json::from_value(json!(RUN)).unwrap(),
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
    let mut stream = new_stream(&first, echo);
    let sent: Vec<_> = events.iter().flat_map(|event| stream.read(event)).collect();
    assert_eq!(check(&first, &values(&sent)), response);
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
            "arguments": format!(r#"{{"x": {index}}}"#), "content": [{"type": "text", "text": "good"}],
            "is_error": false, "verdict": verdict, "duration_ms": 1,
        })
    };
    let begun = json!({"step_number": 1, "step_id": step_id, "started_at": TIME, "left_open_by": RUN});
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
