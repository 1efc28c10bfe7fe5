//! Subagents that do their work: what they are given, what they answer, what is left of them.

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use values::json::Value;

use super::{end, leading, offered, requests_of, session, session_count, steps_of, subagents};
use crate::end_to_end::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::mock_model::{MockModel, Reply, last_user_text, new_results};
use crate::support::test_app::{TestApp, session_path};

on_every_store!(
    a_subagent_works_with_its_own_definition_and_some_of_the_tools,
    its_session_is_committed_with_the_run_and_can_be_continued,
    its_trace_stands_below_the_call_and_its_usage_is_the_runs,
    its_events_are_its_begin_and_its_end,
    subagents_of_one_step_work_at_the_same_time,
    a_run_at_work_shows_the_traces_of_its_steps,
);

/// Two agents: one leads, and has the other find things.
async fn start(database: &TestDatabase, mock: &MockModel) -> TestApp {
    let app = TestApp::start(database.url(), mock, &[]).await;
    let worker = json!({
        "model": "mock/worker", "description": "Finds things.", "tools": ["current_time", "calculator"],
        "system_prompt": "You are {{ metadata.role }} and speak {{ variables.language }}.",
        "metadata": {"role": "a finder"},
    });
    app.put_agent("worker", worker).await;
    let lead = json!({
        "model": "mock/lead", "tools": ["calculator"], "metadata": {"role": "the lead"},
        "subagents": [{"agent": "worker", "tool": "find"}],
    });
    app.put_agent("lead", lead).await;
    app
}

fn found(request: &Value) -> Reply {
    Reply::text(&format!("found {}", last_user_text(request)))
}

async fn pair() -> MockModel {
    MockModel::start(|request| match request["model"].as_str().unwrap() {
        "lead" => leading(request, &[("find", "the key")]),
        _ => found(request),
    })
    .await
}

fn go() -> Value {
    json!({"agent": "lead", "input": "go", "variables": {"language": "Latin"}, "metadata": {"ticket": 7}})
}

async fn a_subagent_works_with_its_own_definition_and_some_of_the_tools(database: TestDatabase) {
    let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
        "lead" if request["messages"].as_array().unwrap().len() == 1 => {
            let arguments = json!({"task": "find it", "context": "the attic"});
            Reply::call("c0", "find", &arguments)
        }
        "lead" => leading(request, &[]),
        _ => found(request),
    })
    .await;
    let app = start(&database, &mock).await;
    let result = app.run_with(go()).await;
    assert_eq!(result["output_text"], "results: found find it\n\nContext:\nthe attic");

    let requests = mock.requests();
    let models: Vec<_> = requests
        .iter()
        .map(|request| request["model"].as_str().unwrap())
        .collect();
    assert_eq!(models, ["lead", "worker", "lead"]);
    assert_eq!(offered(&requests[0]), ["calculator", "find"]);
    let tool = &requests[0]["tools"][1]["function"];
    assert_members!(tool, {"description": "Finds things.", "parameters/required": ["task"]});
    // Of its own tools it has those that the one above has, too.
    assert_eq!(offered(&requests[1]), ["calculator"]);
    assert_eq!(
        requests[1]["messages"],
        json!([
            {"role": "system", "content": "You are a finder and speak Latin."},
            {"role": "user", "content": "find it\n\nContext:\nthe attic"},
        ])
    );

    // Exactly the tools that are listed, also those that it does not name itself.
    let lead = json!({
        "model": "mock/lead", "tools": ["calculator", "current_time"],
        "subagents": [{"agent": "plain", "tool": "find", "tools": ["current_time"]}],
    });
    app.put_agent("plain", json!({"model": "mock/plain", "tools": ["calculator"]}))
        .await;
    app.put_agent("lead", lead).await;
    app.run_with(go()).await;
    assert_eq!(offered(requests_of(&mock.requests(), "plain")[0]), ["current_time"]);
    app.finish().await;
}

async fn its_session_is_committed_with_the_run_and_can_be_continued(database: TestDatabase) {
    let mock = pair().await;
    let app = start(&database, &mock).await;
    let result = app.run_with(go()).await;
    let list = app
        .get(&format!(
            "/v1/sessions?subagent_of={}",
            result["session_id"].as_str().unwrap()
        ))
        .await;
    let listed = list["data"].as_array().unwrap();
    assert_eq!((listed.len(), session_count(&app).await), (1, 2));

    let own = session(&app, &result["session_id"]).await;
    let child = session(&app, &listed[0]["session_id"]).await;
    assert_eq!(own["subagent_of"], json!(null));
    assert_members!(child, {"subagent_of": result["session_id"], "agent": "worker", "run_id": result["run_id"]});
    assert_eq!(child["agent_version"], app.get("/v1/agents/worker").await["version"]);
    assert_members!(child, {"parent_session_id": null, "depth": 0, "metadata": {"role": "a finder"}});
    assert_eq!(child["environment_state"], own["environment_state"]);
    let context = &child["context_state"];
    assert_eq!(context["parent_agent_id"], own["context_state"]["agent_id"]);
    assert_ne!(context["agent_id"], own["context_state"]["agent_id"]);
    assert_eq!(context["execution_count"], 1);
    assert_eq!(child["message_count"], 2);
    assert_eq!(app.get(&session_path(&child, "/verify")).await["valid"], true);

    // It is a session like others: its agent goes on, now with all of its own tools.
    let next = app
        .run_with(json!({"base_session_id": child["session_id"], "input": "the lock"}))
        .await;
    assert_members!(next, {"agent": "worker", "output_text": "found the lock"});
    let requests = mock.requests();
    let last = requests.last().unwrap();
    assert_eq!(offered(last), ["current_time", "calculator"]);
    assert_eq!(last["messages"].as_array().unwrap().len(), 4);
    let continued = session(&app, &next["session_id"]).await;
    assert_members!(continued, {"parent_session_id": child["session_id"], "subagent_of": null});
    assert_eq!(continued["context_state"]["agent_id"], context["agent_id"]);
    app.finish().await;
}

async fn its_trace_stands_below_the_call_and_its_usage_is_the_runs(database: TestDatabase) {
    let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
        "lead" => leading(request, &[("find", "the key")]),
        _ if new_results(request).is_empty() => Reply::call("w", "calculator", &json!({"expression": "6*7"})),
        _ => Reply::text("found"),
    })
    .await;
    let app = start(&database, &mock).await;
    let result = app.run_with(go()).await;
    // Every answer has 15 tokens: two of the lead, two of its subagent.
    assert_eq!(
        (end(&result), &result["step_count"]),
        (("completed", "completed", 60), &json!(2))
    );
    let steps = steps_of(&app, &result).await;
    let totals = column(&steps, "usage/total_tokens");
    assert_eq!(totals, [45, 15]);

    let execution = &steps[0]["tool_executions"][0];
    assert_members!(execution, {"name": "find", "is_error": false});
    let [subagent] = subagents(&steps)[..] else {
        panic!("{steps:#}")
    };
    assert_eq!(end(subagent), ("completed", "completed", 30));
    let child = session(&app, &subagent["session_id"]).await;
    assert_members!(subagent, {"agent": "worker", "agent_id": child["context_state"]["agent_id"]});
    for (steps, model) in [(&steps, "mock/lead"), (&subagent["steps"], "mock/worker")] {
        assert_eq!(column(steps, "model_requests/0/model"), [model, model]);
        assert_eq!(column(steps, "model_requests/1"), [&Value::Null, &Value::Null]);
    }
    let messages = child["message_history_state"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[1]["tags"]["execution_id"], subagent["execution_id"]);
    // The messages of its steps are those of its session, after the task.
    assert_members!(subagent, {"steps/0/messages": messages[1..3], "steps/1/messages": messages[3..]});
    assert_eq!(subagent["steps"][0]["tool_executions"][0]["name"], "calculator");
    app.finish().await;
}

async fn its_events_are_its_begin_and_its_end(database: TestDatabase) {
    let mock = pair().await;
    let app = start(&database, &mock).await;
    let events = app.stream(go()).await;
    let names: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let begin = names.iter().position(|name| *name == "subagent.started").unwrap();
    assert_eq!(
        names[begin..begin + 4],
        [
            "subagent.started",
            "subagent.completed",
            "tool_call.completed",
            "step.completed"
        ]
    );
    let steps = steps_of(&app, &events[0]["data"]).await;
    let subagent = subagents(&steps)[0].clone();
    let (started, ended) = (&events[begin]["data"], &events[begin + 1]["data"]);
    assert_eq!(
        *started,
        json!({
            "step_number": 1, "call_id": "c0", "agent": "worker", "agent_id": subagent["agent_id"],
            "session_id": subagent["session_id"],
        })
    );
    assert_eq!(
        *ended,
        json!({
            "step_number": 1, "call_id": "c0", "agent": "worker", "agent_id": subagent["agent_id"],
            "session_id": subagent["session_id"], "status": "completed", "stop_reason": "completed",
            "finish_reason": "stop", "step_count": 1, "usage": subagent["usage"],
        })
    );
    app.finish().await;
}

async fn subagents_of_one_step_work_at_the_same_time(database: TestDatabase) {
    let gate = Gate::new();
    let held = gate.clone();
    let mock = MockModel::start(move |request| match request["model"].as_str().unwrap() {
        "lead" => leading(request, &[("find", "a"), ("find", "b"), ("find", "c")]),
        _ => Reply::Held(held.clone(), format!("found {}", last_user_text(request))),
    })
    .await;
    let app = start(&database, &mock).await;
    let all_at_work = async {
        gate.until_waiting(3).await;
        gate.open(3);
    };
    let (result, ()) = tokio::join!(app.run_with(go()), all_at_work);
    assert_eq!(result["output_text"], "results: found a | found b | found c");
    assert_eq!(end(&result), ("completed", "completed", 75));
    let steps = steps_of(&app, &result).await;
    for (subagent, words) in subagents(&steps).into_iter().zip(["a", "b", "c"]) {
        let child = session(&app, &subagent["session_id"]).await;
        assert_eq!(child["subagent_of"], result["session_id"]);
        assert_eq!(
            child["message_history_state"]["messages"][0]["content"][0]["text"],
            words
        );
    }
    assert_eq!(session_count(&app).await, 4);
    app.finish().await;
}

async fn a_run_at_work_shows_the_traces_of_its_steps(database: TestDatabase) {
    let gate = Gate::new();
    let held = gate.clone();
    let mock = MockModel::start(move |request| match request["model"].as_str().unwrap() {
        "lead" if new_results(request).is_empty() => leading(request, &[("find", "the key")]),
        "lead" => Reply::Held(held.clone(), "done".to_owned()),
        _ => found(request),
    })
    .await;
    let app = start(&database, &mock).await;
    let watching = async {
        gate.until_waiting(1).await;
        let run = app.get("/v1/runs?status=running").await["data"][0].clone();
        let steps = steps_of(&app, &run).await;
        gate.open(1);
        steps
    };
    let (result, live) = tokio::join!(app.run_with(go()), watching);
    assert_eq!(live.as_array().unwrap().len(), 1);
    assert_eq!(
        live[0],
        steps_of(&app, &result).await[0],
        "what is shown is what is stored"
    );
    assert_eq!(
        subagents(&live)[0]["steps"][0]["messages"][0]["content"][0]["text"],
        "found the key"
    );
    app.finish().await;
}
