//! Waiting runs at two replicas that share a database and a Redis: calls that one of them has left
//! open are answered at the other one.

use chrono::Utc;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::gate::Gate;
use test_support::wait::until;
use values::clock::Timestamp;

use super::service::{Service, read};
use super::workers::Pair;
use crate::end_to_end::waiting::{answer_to, model};
use crate::support::members::{assert_members, extended};
use crate::support::test_app::{run_path, session_path};

/// How often two answers race.
const RACES: usize = 8;

/// Starts replicas with the agent `asker`: each writing of a file needs an approval.
async fn replicas(expires_after_seconds: u64) -> Option<Pair> {
    let replicas = Pair::start(["all", "all"], Gate::new(), model).await?;
    let agent = json!({
        "model": "mock/m", "tools": ["write_file", "calculator"], "client_tools": [{"name": "ask"}],
        "approvals": [{"tools": ["write_file"], "approval": "always", "expires_after_seconds": expires_after_seconds}],
    });
    replicas.here.put_agent("asker", agent).await;
    Some(replicas)
}

/// Runs the agent until its calls wait.
async fn waiting(service: &Service, calls: Value, thread: Option<&str>) -> Value {
    let body = json!({"agent": "asker", "input": calls.to_string(), "thread": thread});
    let run = service.post("/v1/runs", body).await;
    assert_eq!(run["status"], "waiting", "{run:#}");
    run
}

fn write(path: &str) -> Value {
    json!(["c1", "write_file", {"path": path, "content": "x"}])
}

pub(super) fn path(run: &Value) -> String {
    run_path(run, "/answers")
}

/// Sends answers with an idempotency key.
pub(super) async fn answer_keyed(service: &Service, run: &Value, key: &str, body: &Value) -> Value {
    let request = service.request(Method::POST, &path(run)).header("idempotency-key", key);
    let (status, answer) = read(request, Some(body.clone())).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_answered_at_the_other_replica() {
    let Some(replicas) = replicas(3600).await else { return };
    let Pair { here, there, mock, .. } = &replicas;
    let calls = json!([["c0", "calculator", {"expression": "6 * 7"}], write("a"), ["c2", "ask", {}]]);
    let run = waiting(here, calls, None).await;
    let shown = there.get(&run_path(&run, "")).await;
    assert_eq!(shown, run);
    let body = json!({"answers": [
        answer_to(&run, "c1", json!({"decision": "approve"})),
        answer_to(&run, "c2", json!({"result": "yes"})),
    ]});
    // The same request at both at once, and again later, is one run.
    let (first, second) = tokio::join!(
        answer_keyed(there, &run, "k", &body),
        answer_keyed(here, &run, "k", &body)
    );
    let again = answer_keyed(here, &run, "k", &body).await;
    for other in [&second, &again] {
        assert_eq!(other["run_id"], first["run_id"]);
    }
    assert_eq!(again["status"], "completed", "{again:#}");
    assert!(
        again["output_text"].as_str().unwrap().starts_with("read: 42 | "),
        "{again:#}"
    );
    assert_eq!(mock.asked(), 2);
    let files = session_path(&again, "/files");
    for service in [here, there] {
        assert_eq!(service.get(&files).await["data"][0]["path"], "a");
    }
    replicas.stop().await;
}

/// Answers a run at both replicas at once. Returns what became of each answer: a status, or the
/// code of a problem or an error.
async fn race(replicas: &Pair, run: &Value, more: &Value) -> [String; 2] {
    let body = json!({"answers": [answer_to(run, "c1", json!({"decision": "approve"}))]});
    let body = extended(body, more);
    let path = path(run);
    let (here, there) = tokio::join!(
        replicas.here.call(Method::POST, &path, Some(body.clone())),
        replicas.there.call(Method::POST, &path, Some(body.clone())),
    );
    let mut ends = [here, there].map(|(status, answer)| {
        let end = match status {
            StatusCode::OK if answer["error"].is_object() => &answer["error"]["code"],
            StatusCode::OK => &answer["status"],
            _ => &answer["code"],
        };
        end.as_str().unwrap().to_owned()
    });
    ends.sort();
    ends
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_answers_at_two_replicas_wins() {
    let Some(replicas) = replicas(3600).await else { return };
    for round in 0..RACES {
        let thread = format!("thread-{round}");
        let run = waiting(&replicas.here, json!([write("a")]), Some(&thread)).await;
        let ends = race(&replicas, &run, &json!({})).await;
        let [lost, won] = match ends {
            [won, lost] if won == "completed" => [lost, won],
            other => other,
        };
        let is_refused = ["thread_busy", "session_not_waiting", "run_not_waiting"].contains(&lost.as_str());
        assert!(won == "completed" && is_refused, "{won} {lost}");
        // The thread has moved once more, to the session of the run that won.
        let shown = replicas.there.get(&format!("/v1/threads/{thread}")).await;
        assert_eq!(shown["version"], 2, "{shown:#}");
        let session = session_path(&shown, "");
        assert_eq!(
            replicas.there.get(&session).await["parent_session_id"],
            run["session_id"]
        );

        // Without a thread as well.
        let run = waiting(&replicas.there, json!([write("b")]), None).await;
        let ends = race(&replicas, &run, &json!({})).await;
        assert_eq!(ends, ["completed", "run_not_waiting"]);
        let children = session_path(&run, "/children");
        let children = replicas.here.get(&children).await;
        assert_eq!(children["data"].as_array().unwrap().len(), 1, "{children:#}");
    }
    replicas.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_expire_at_a_replica_that_never_saw_their_run() {
    let Some(replicas) = replicas(1).await else { return };
    let Pair { here, there, mock, .. } = replicas;
    let run = waiting(&here, json!([write("a")]), None).await;
    here.stop().await;
    let expires_at = run["required_action"]["calls"][0]["expires_at"].as_str().unwrap();
    let expires_at: Timestamp = expires_at.parse().unwrap();
    until("the call does not expire", async || expires_at < Utc::now()).await;
    let late = json!({"answers": [answer_to(&run, "c1", json!({"decision": "approve"}))]});
    there
        .refused(Method::POST, &path(&run), Some(late), "invalid_answers")
        .await;
    let body = json!({"base_session_id": run["session_id"], "input": "Go on."});
    let next = there.post("/v1/runs", body).await;
    assert_members!(next, {"status": "completed", "output_text": "echo: Go on."});
    let request = mock.requests().pop().unwrap();
    assert_eq!(
        request["messages"][2]["content"],
        "This call was denied, because nobody answered it in time."
    );
    assert_eq!(there.get(&session_path(&next, "/files")).await["data"], json!([]));
    there.stop().await;
}
