//! Subagents of a run whose process dies: they go on as who they were, and what has ended is not
//! done again.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until;
use values::json::Value;

use super::world::{Replica, World, execution_of, resumed_events};
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{Reply, last_user_text};
use crate::support::test_app::{run_path, session_path};

on_every_store!(
    a_subagent_continues_as_the_same_agent_instance,
    a_subagent_that_has_ended_is_not_run_again,
    a_subagent_that_has_ended_waits_for_the_other_calls,
    subagents_of_two_levels_go_on,
    a_subagent_that_fails_after_it_was_resumed_has_no_session,
    what_a_subagent_has_spent_that_can_t_go_on_counts,
    subagents_that_have_ended_count_among_those_a_run_may_have,
);

/// The tokens of each completion.
const ANSWER: u64 = 15;
/// The price of each completion of a model with a price, in dollars: ten tokens in and five out.
const COST: f64 = 0.02;
const PRICES: [(&str, &str); 6] = [
    ("prices.'mock/finder'.input", "1000.0"),
    ("prices.'mock/finder'.output", "2000.0"),
    ("prices.'mock/middle'.input", "1000.0"),
    ("prices.'mock/middle'.output", "2000.0"),
    ("prices.'mock/lead'.input", "1000.0"),
    ("prices.'mock/lead'.output", "2000.0"),
];

/// Finds with three answers, and passes tasks on with two. What waits at the gate stands in the
/// task.
fn story(request: &Value, gate: &Arc<Gate>) -> Reply {
    let messages = request["messages"].as_array().unwrap();
    let calls = messages
        .iter()
        .filter(|message| message["tool_calls"].is_array())
        .count();
    let (model, said) = (request["model"].as_str().unwrap(), last_user_text(request));
    let call = |id: &str, tool: &str, arguments: Value| (id.to_owned(), tool.to_owned(), arguments.to_string());
    let find = || call("f", "find", json!({"task": said.as_str()}));
    match (model, calls) {
        ("finder", 0) => Reply::ToolCalls(vec![call("c1", "plain", json!({}))]),
        ("finder", 1) if !said.contains("simply") => {
            Reply::ToolCalls(vec![call("c2", "once", json!({})), call("c3", "again", json!({}))])
        }
        ("finder", _) if said.contains("in vain") => Reply::Status(400, "no".to_owned()),
        ("juggler", 0) => Reply::ToolCalls(vec![find(), call("c4", "again", json!({}))]),
        ("lead" | "middle", 0) => Reply::ToolCalls(vec![find()]),
        _ if said.contains(&format!("{model} waits")) => Reply::Held(Arc::clone(gate), format!("{model} is done")),
        _ => Reply::text(&format!("{model} is done")),
    }
}

async fn priced_replica(world: &World) -> Replica {
    world.replica_with(&PRICES).await
}

/// Starts a process whose agents know each other.
async fn start(database: TestDatabase, gate: &Arc<Gate>) -> (World, Replica) {
    start_with(database, gate, &[]).await
}

/// Starts such a process with more settings.
async fn start_with(
    database: TestDatabase,
    gate: &Arc<Gate>,
    settings: &[(&'static str, &'static str)],
) -> (World, Replica) {
    let gate = Arc::clone(gate);
    let world = World::new(database, move |request| story(request, &gate)).await;
    let replica = world.replica_with(&[&PRICES, settings].concat()).await;
    for (name, below) in [
        ("finder", None),
        ("middle", Some("finder")),
        ("lead", Some("finder")),
        ("juggler", Some("finder")),
        ("head", Some("middle")),
    ] {
        let model = if name == "head" { "lead" } else { name };
        let mut agent = json!({"model": format!("mock/{model}"), "tools": ["plain", "once", "again"]});
        if let Some(below) = below {
            agent["subagents"] = json!([{"agent": below, "tool": "find"}]);
            agent["max_depth"] = json!(2);
        }
        replica.put_agent(name, agent).await;
    }
    (world, replica)
}

fn durable(agent: &str) -> Value {
    json!({"agent": agent, "durability": "step"})
}

/// The data of the only event of the type.
fn only<'a>(events: &'a [Value], event_type: &str) -> &'a Value {
    let found: Vec<_> = events.iter().filter(|event| event["type"] == event_type).collect();
    assert_eq!(found.len(), 1, "{event_type}: {found:#?}");
    &found[0]["data"]
}

/// The sessions of the agents that worked for the session.
async fn sessions_below(replica: &Replica, session_id: &Value) -> Vec<Value> {
    let path = format!("/v1/sessions?subagent_of={}", session_id.as_str().unwrap());
    replica.get(&path).await["data"].as_array().unwrap().clone()
}

/// The record of the subagent of the first call.
async fn trace_of(replica: &Replica, run: &Value) -> Value {
    let steps = replica.get(&run_path(run, "/steps")).await;
    steps["data"][0]["tool_executions"][0]["subagent"].clone()
}

/// How often each model was asked.
fn asked(world: &World) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (model, _) in world.asked() {
        *counts.entry(model).or_default() += 1;
    }
    counts.into_iter().collect()
}

fn counts(of: &[(&str, usize)]) -> Vec<(String, usize)> {
    of.iter().map(|(model, count)| ((*model).to_owned(), *count)).collect()
}

/// Waits until it is persisted what so many answers have used. A later attempt may not count them
/// twice.
async fn until_spent(world: &World, answers: u64) {
    until("what is spent is not persisted", async || {
        let spent = "select max(total_tokens) from runs where status = 'running'";
        world.database.number(spent).await == i64::try_from(answers * ANSWER).unwrap()
    })
    .await;
}

/// Ends a process whose run waits at a gate, once so many answers are counted, and starts another
/// one. The gate lets a call pass.
async fn successor(world: &World, dying: Replica, answers: u64, gate: &Gate) -> Replica {
    until_spent(world, answers).await;
    dying.die(world).await;
    gate.until_waiting(0).await;
    gate.open(1);
    priced_replica(world).await
}

/// Checks how a run ended, and what its answers have used.
fn assert_completed(ended: &Value, attempts: u32, answers: u64) {
    assert_members!(ended, {"status": "completed", "attempts": attempts, "usage/total_tokens": answers * ANSWER});
}

/// Checks what a run has cost whose models all have a price.
fn assert_cost(ended: &Value, answers: u64) {
    let cost = ended["usage"]["cost"].as_f64().unwrap_or_default();
    let expected = COST * f64::from(u32::try_from(answers).unwrap());
    assert!((cost - expected).abs() < 1e-9, "{ended:#}");
}

async fn a_subagent_continues_as_the_same_agent_instance(database: TestDatabase) {
    let gate = Gate::new();
    let (world, first) = start(database, &gate).await;
    let run = first.begin("go", durable("lead")).await;
    world.tool_gate.until_waiting(2).await;
    let second = successor(&world, first, 3, &world.tool_gate).await;
    let ended = second.ended(&run).await;
    assert_completed(&ended, 2, 5);
    assert_cost(&ended, 5);
    assert_members!(ended, {"output_text": "lead is done", "step_count": 2});
    assert_eq!(asked(&world), counts(&[("finder", 3), ("lead", 2)]));
    assert_eq!(
        (world.plain.begun(), world.once.begun(), world.again.begun()),
        (1, 1, 2)
    );
    assert_eq!(world.again.keys()[0], world.again.keys()[1]);

    let events = resumed_events(&second, &run, &[0]).await;
    execution_of(&events);
    let (begun, over) = (only(&events, "subagent.started"), only(&events, "subagent.completed"));
    for same in ["agent", "agent_id", "session_id", "step_number"] {
        assert_eq!(begun[same], over[same], "{same}");
    }
    assert_members!(over, {"status": "completed", "step_count": 3, "usage/total_tokens": 3 * ANSWER});
    let below = sessions_below(&second, &run["session_id"]).await;
    assert_eq!((below.len(), &below[0]["session_id"]), (1, &begun["session_id"]));
    assert_members!(below[0], {"execution_count": 1, "message_count": 6});
    let trace = trace_of(&second, &run).await;
    assert_members!(trace, {"session_id": begun["session_id"], "agent_id": begun["agent_id"]});
    assert_eq!(trace["steps"].as_array().unwrap().len(), 3, "{trace:#}");
    let verified = second.get(&session_path(&run, "/verify")).await;
    assert_eq!(verified["faults"], json!([]));
    second.finish().await;
}

async fn a_subagent_that_has_ended_is_not_run_again(database: TestDatabase) {
    let gate = Gate::new();
    let (world, first) = start(database, &gate).await;
    let run = first.begin("simply, and the lead waits", durable("lead")).await;
    gate.until_waiting(1).await;
    let second = successor(&world, first, 3, &gate).await;
    let ended = second.ended(&run).await;
    // The answer that was asked for again is counted once.
    assert_completed(&ended, 2, 4);
    assert_eq!(asked(&world), counts(&[("finder", 2), ("lead", 3)]));
    assert_eq!(world.plain.begun(), 1);
    let events = resumed_events(&second, &run, &[1]).await;
    let begun = only(&events, "subagent.started");
    let below = sessions_below(&second, &run["session_id"]).await;
    assert_eq!((below.len(), &below[0]["session_id"]), (1, &begun["session_id"]));
    let session = second.get(&session_path(begun, "")).await;
    assert_eq!(session["context_state"]["agent_id"], begun["agent_id"]);
    // It can be continued as any other.
    let next = json!({"base_session_id": begun["session_id"], "input": "simply on"});
    assert_eq!(second.run_with(next).await["status"], "completed");
    second.finish().await;
}

async fn a_subagent_that_has_ended_waits_for_the_other_calls(database: TestDatabase) {
    let gate = Gate::new();
    let (world, first) = start(database, &gate).await;
    let run = first.begin("simply", durable("juggler")).await;
    world.tool_gate.until_waiting(1).await;
    until("the end of the subagent's call is not kept", async || {
        // The input, the answer, two calls that begin, and one that ends.
        let entries = "select count(*) from run_journal where scope = ''";
        world.database.number(entries).await == 5
    })
    .await;
    let second = successor(&world, first, 3, &world.tool_gate).await;
    let ended = second.ended(&run).await;
    assert_completed(&ended, 2, 4);
    assert_eq!(asked(&world), counts(&[("finder", 2), ("juggler", 2)]));
    resumed_events(&second, &run, &[0]).await;
    let trace = trace_of(&second, &run).await;
    let below = sessions_below(&second, &run["session_id"]).await;
    assert_eq!((below.len(), &below[0]["session_id"]), (1, &trace["session_id"]));
    assert_eq!(trace["steps"].as_array().unwrap().len(), 2, "{trace:#}");
    second.finish().await;
}

async fn subagents_of_two_levels_go_on(database: TestDatabase) {
    let gate = Gate::new();
    let (world, first) = start(database, &gate).await;
    let run = first.begin("the middle waits", durable("head")).await;
    world.tool_gate.until_waiting(2).await;
    let second = successor(&world, first, 4, &world.tool_gate).await;
    gate.until_waiting(1).await;
    let third = successor(&world, second, 5, &gate).await;
    let ended = third.ended(&run).await;
    assert_completed(&ended, 3, 7);
    assert_cost(&ended, 7);
    assert_eq!(asked(&world), counts(&[("finder", 3), ("lead", 2), ("middle", 3)]));
    assert_eq!(
        (world.plain.begun(), world.once.begun(), world.again.begun()),
        (1, 1, 2)
    );
    let events = resumed_events(&third, &run, &[0, 0]).await;
    let (begun, over) = (only(&events, "subagent.started"), only(&events, "subagent.completed"));
    assert_eq!(
        (&begun["session_id"], &over["usage"]["total_tokens"]),
        (&over["session_id"], &json!(5 * ANSWER))
    );
    assert_eq!(over["finish_reason"], "stop");
    let below = sessions_below(&third, &run["session_id"]).await;
    assert_eq!((below.len(), &below[0]["session_id"]), (1, &begun["session_id"]));
    let deepest = sessions_below(&third, &below[0]["session_id"]).await;
    assert_eq!((deepest.len(), &deepest[0]["agent"]), (1, &json!("finder")));
    third.finish().await;
}

async fn a_subagent_that_fails_after_it_was_resumed_has_no_session(database: TestDatabase) {
    let gate = Gate::new();
    let (world, first) = start(database, &gate).await;
    let run = first.begin("in vain", durable("lead")).await;
    world.tool_gate.until_waiting(2).await;
    let second = successor(&world, first, 3, &world.tool_gate).await;
    let ended = second.ended(&run).await;
    assert_completed(&ended, 2, 4);
    let events = resumed_events(&second, &run, &[0]).await;
    let (begun, over) = (only(&events, "subagent.started"), only(&events, "subagent.completed"));
    assert_members!(over, {"session_id": begun["session_id"], "status": "failed"});
    assert!(sessions_below(&second, &run["session_id"]).await.is_empty());
    let read = world.mock.requests().pop().unwrap();
    assert_eq!(read["model"], "lead");
    assert!(read.to_string().contains("the agent finder failed"), "{read:#}");
    second.finish().await;
}

async fn what_a_subagent_has_spent_that_can_t_go_on_counts(database: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n").unwrap();
    let settings = [
        (
            "webhooks.secrets.main.file",
            String::leak(secret.to_str().unwrap().to_owned()) as &_,
        ),
        ("webhooks.secrets.main.tenants", "[\"*\"]"),
    ];
    let gate = Gate::new();
    let (world, first) = start_with(database, &gate, &settings).await;
    let config = json!({"url": "https://example.org/", "points": ["on_stop"], "secret": "main"});
    let finder = json!({
        "model": "mock/finder", "tools": ["plain", "once", "again"],
        "hooks": [{"name": "webhook", "config": config}],
    });
    first.put_agent("finder", finder).await;
    let run = first.begin("go", durable("lead")).await;
    world.tool_gate.until_waiting(2).await;
    until_spent(&world, 3).await;
    first.die(&world).await;
    world.tool_gate.until_waiting(0).await;
    // The secret of its webhook is gone.
    let second = priced_replica(&world).await;
    let ended = second.ended(&run).await;
    assert_completed(&ended, 2, 4);
    assert_cost(&ended, 4);
    let read = world.mock.requests().pop().unwrap();
    assert_eq!(read["model"], "lead");
    assert!(read.to_string().contains("secret"), "{read:#}");
    second.finish().await;
}

async fn subagents_that_have_ended_count_among_those_a_run_may_have(database: TestDatabase) {
    // The first has the agents below it work, then calls a tool, and then has them work again; the
    // last just answers.
    let world = World::new(database, |request| {
        let messages = request["messages"].as_array().unwrap();
        let calls = messages.iter().filter(|message| message["tool_calls"].is_array());
        match (request["model"].as_str().unwrap(), calls.count()) {
            ("level0", 0 | 2) | ("level1" | "level2", 0) => Reply::call("c", "below", &json!({"task": "work"})),
            ("level0", 1) => Reply::call("c", "again", &json!({})),
            _ => Reply::text("done"),
        }
    })
    .await;
    let settings = [("runs.max_subagents", "4")];
    let first = world.replica_with(&settings).await;
    for level in (0..4).rev() {
        let mut agent = json!({"model": format!("mock/level{level}"), "tools": ["again"], "max_depth": 3});
        if level < 3 {
            agent["subagents"] = json!([{"agent": format!("level{}", level + 1), "tool": "below"}]);
        }
        first.put_agent(&format!("level{level}"), agent).await;
    }
    let run = first.begin("go", durable("level0")).await;
    world.tool_gate.until_waiting(1).await;
    first.die(&world).await;
    world.tool_gate.until_waiting(0).await;
    world.tool_gate.open(1);
    let second = world.replica_with(&settings).await;
    // Three have ended with the first process, so one more begins, and none below it.
    assert_completed(&second.ended(&run).await, 2, 11);
    assert_eq!(
        asked(&world),
        counts(&[("level0", 4), ("level1", 4), ("level2", 2), ("level3", 1)])
    );
    let refused = "the agent level2 can't begin: the run has had all 4 agents that it may have; go on without";
    let reported = world
        .mock
        .requests()
        .iter()
        .filter(|request| request.to_string().contains(refused))
        .count();
    assert_eq!(reported, 1);
    second.finish().await;
}
