//! Threads that callers move: made, moved only from where they are expected, listed and deleted.

use reqwest::{Method, header};
use serde_json::{Value, json};

use super::service::{NOWHERE, Service};
use crate::support::answer::{Answer, read, with_json};
use crate::support::members::{assert_members, column};
use crate::support::test_app::run_path;

on_every_store! {
    a_thread_is_made_moved_shown_and_taken_away,
    a_thread_is_moved_only_from_where_it_is_expected,
    a_new_thread_is_made_only_where_there_is_none,
    a_thread_points_to_sessions_that_are_there,
    threads_are_listed_by_name_in_pages,
    the_messages_of_a_thread_are_those_of_its_session,
    sessions_and_runs_are_found_by_their_thread,
}

async fn session(service: &Service) -> Value {
    service.run_with(json!({"input": "hi"})).await["session_id"].clone()
}

async fn make_new(service: &Service, name: &str, session: &Value) -> Answer {
    let request = service.request(Method::PUT, &format!("/v1/threads/{name}"));
    let request = request.header(header::IF_NONE_MATCH, "*");
    read(with_json(request, &json!({"session_id": session}))).await
}

async fn a_thread_is_made_moved_shown_and_taken_away(service: &Service) {
    let (first, second) = (session(service).await, session(service).await);
    let name = "support:17@acme.example-a_b";
    let path = format!("/v1/threads/{name}");
    let made = service.put(&path, &json!({"session_id": first})).await.ok();
    assert_members!(made, {"name": name, "session_id": first, "version": 1, "created_at": made["updated_at"]});
    assert_eq!(service.get(&path).await, made);
    let moved = service.put(&path, &json!({"session_id": second})).await.ok();
    assert_members!(moved, {"session_id": second, "version": 2, "created_at": made["created_at"]});
    assert_eq!(service.get(&path).await, moved);
    let deleted = read(service.request(Method::DELETE, &path)).await;
    assert_eq!((deleted.status.as_u16(), deleted.text().as_str()), (204, ""));
    for method in [Method::DELETE, Method::GET] {
        read(service.request(method, &path))
            .await
            .assert_problem("thread_not_found");
    }
    service.get(&format!("/v1/sessions/{}", second.as_str().unwrap())).await;
}

async fn a_thread_is_moved_only_from_where_it_is_expected(service: &Service) {
    let (first, second) = (session(service).await, session(service).await);
    let put = async |to: &Value, expected: &Value| {
        let body = json!({"session_id": to, "expected_session_id": expected});
        service.put("/v1/threads/t", &body).await
    };
    // There is nothing that it could be moved from.
    for expected in [&first, &Value::Null] {
        let answer = put(&first, expected).await;
        answer.assert_problem("thread_moved");
        assert_eq!(answer.json().get("session_id"), None);
    }
    service.put("/v1/threads/t", &json!({"session_id": first})).await.ok();
    for expected in [&second, &Value::Null] {
        let answer = put(&second, expected).await;
        answer.assert_problem("thread_moved");
        assert_eq!(answer.json()["session_id"], first);
    }
    assert_eq!(put(&second, &first).await.ok()["version"], 2);
    assert_eq!(service.get("/v1/threads/t").await["session_id"], second);
}

async fn a_new_thread_is_made_only_where_there_is_none(service: &Service) {
    let (first, second) = (session(service).await, session(service).await);
    assert_eq!(make_new(service, "t", &first).await.ok()["session_id"], first);
    let answer = make_new(service, "t", &second).await;
    answer.assert_problem("thread_moved");
    assert_eq!(answer.json()["session_id"], first);
    assert_eq!(service.get("/v1/threads/t").await["version"], 1);
}

async fn a_thread_points_to_sessions_that_are_there(service: &Service) {
    let put = async |body: Value| service.put("/v1/threads/t", &body).await;
    put(json!({"session_id": NOWHERE}))
        .await
        .assert_problem("session_not_found");
    let running = json!({"input": "hi", "model": "mock/gated"});
    let working = service.post("/v1/runs", &running);
    let watching = async {
        service.gate.until_waiting(1).await;
        let run = service.get("/v1/runs?status=running").await["data"][0].clone();
        let answer = put(json!({"session_id": run["session_id"]})).await;
        answer.assert_problem("session_not_committed");
        assert_eq!(answer.json()["run_id"], run["run_id"]);
        service.gate.open(1);
    };
    let (answer, ()) = tokio::join!(working, watching);
    answer.ok();
    for (body, code, pointer) in [
        (json!({}), "missing_field", "/session_id"),
        (json!({"session_id": null}), "invalid_field", "/session_id"),
        (json!({"session_id": "x"}), "malformed_id", "/session_id"),
        (
            json!({"session_id": NOWHERE, "expected_session_id": "x"}),
            "malformed_id",
            "/expected_session_id",
        ),
        (
            json!({"session_id": NOWHERE, "version": 1}),
            "unknown_field",
            "/version",
        ),
    ] {
        let answer = put(body.clone()).await;
        answer.assert_problem_at(code, pointer);
    }
    for name in ["a%20b", "caf%C3%A9", &"x".repeat(129)] {
        let answer = service
            .put(&format!("/v1/threads/{name}"), &json!({"session_id": NOWHERE}))
            .await;
        answer.assert_problem_at("invalid_field", "name");
    }
    assert_eq!(service.get("/v1/threads").await["data"], json!([]));
}

async fn threads_are_listed_by_name_in_pages(service: &Service) {
    let session = session(service).await;
    let longest = "z".repeat(128);
    for name in ["b", "a:1", &longest, "a"] {
        make_new(service, name, &session).await.ok();
    }
    let pages = service.pages("/v1/threads?limit=2").await;
    let names: Vec<_> = pages.iter().map(|page| column(&page["data"], "name")).collect();
    assert_eq!(names, [["a", "a:1"], ["b", &longest]]);
    // The name before the last one is the cursor, also where it is as long as can be.
    let page = service.get("/v1/threads?limit=200").await;
    assert_eq!(
        (page["data"].as_array().unwrap().len(), &page["next_cursor"]),
        (4, &Value::Null)
    );
}

async fn the_messages_of_a_thread_are_those_of_its_session(service: &Service) {
    let send = async |text: &str| service.run_with(json!({"thread": "ada", "input": text})).await["session_id"].clone();
    let path = "/v1/threads/ada/messages";
    service.try_get(path).await.assert_problem("thread_not_found");
    let first = send("one").await;
    let page = service.get(&format!("{path}?limit=1")).await;
    assert_members!(page, {"session_id": first, "from": 0, "total": 2});
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    let second = send("two").await;
    let mut all = page["data"].as_array().unwrap().clone();
    // The thread has moved since, and the cursor goes on where it was.
    let mut cursor = page["next_cursor"].clone();
    while let Some(next) = cursor.as_str() {
        let page = service.get(&format!("{path}?limit=2&cursor={next}")).await;
        assert_members!(page, {"session_id": second, "total": 4});
        all.extend(page["data"].as_array().unwrap().iter().cloned());
        cursor = page["next_cursor"].clone();
    }
    let of_session = service
        .get(&format!("/v1/sessions/{}/messages", second.as_str().unwrap()))
        .await;
    assert_eq!(json!(all), of_session["data"]);
    let from = service.get(&format!("{path}?from=2")).await;
    assert_eq!(from["data"], json!(all[2..]));

    // A thread whose first run is still at work points nowhere, and has no messages.
    let body = json!({"thread": "new", "input": "hi", "model": "mock/gated", "mode": "async"});
    let run = service.post("/v1/runs", &body).await.json();
    service.gate.until_waiting(1).await;
    let nothing = service.get("/v1/threads/new/messages").await;
    assert_eq!(
        nothing,
        json!({"session_id": null, "data": [], "next_cursor": null, "from": 0, "total": 0})
    );
    service.gate.open(1);
    while service.get(&run_path(&run, "?wait=30s")).await["status"] != "completed" {}
    assert_eq!(service.get("/v1/threads/new/messages").await["total"], 2);
}

async fn sessions_and_runs_are_found_by_their_thread(service: &Service) {
    let mut of_ada = Vec::new();
    for turn in 0..3 {
        let body = json!({"thread": "ada", "input": "hi", "metadata": {"turn": turn, "who": "ada"}});
        of_ada.insert(0, service.run_with(body).await);
    }
    service
        .run_with(json!({"thread": "bob", "input": "hi", "metadata": {"who": "bob"}}))
        .await;
    service.run_with(json!({"input": "hi"})).await;
    let found = async |path: &str, id: &str| -> Vec<Value> {
        let list = service.get(path).await;
        list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row[id].clone())
            .collect()
    };
    let of = |rows: &[Value], id: &str| -> Vec<Value> { rows.iter().map(|row| row[id].clone()).collect() };
    assert_eq!(
        found("/v1/sessions?thread=ada", "session_id").await,
        of(&of_ada, "session_id")
    );
    assert_eq!(
        found("/v1/sessions?thread=ada&tips=true", "session_id").await,
        of(&of_ada[..1], "session_id")
    );
    assert_eq!(found("/v1/sessions?thread=eve", "session_id").await, [] as [Value; 0]);
    for query in [
        "thread=ada",
        "metadata.who=ada",
        "metadata={\"who\":\"ada\"}",
        "thread=ada&metadata.who=ada&model=mock/echo",
    ] {
        assert_eq!(
            found(&format!("/v1/runs?{query}"), "run_id").await,
            of(&of_ada, "run_id"),
            "{query}"
        );
    }
    assert_eq!(
        found("/v1/runs?metadata={\"turn\":1}", "run_id").await,
        of(&of_ada[1..2], "run_id")
    );
    assert_eq!(found("/v1/runs?model=mock/echo", "run_id").await.len(), 5);
    assert_eq!(found("/v1/runs?model=mock/other", "run_id").await.len(), 0);
    for (path, code) in [
        ("/v1/runs?model=echo", "invalid_parameter"),
        ("/v1/runs?metadata=7", "invalid_parameter"),
        ("/v1/sessions?thread=a%20b", "invalid_parameter"),
    ] {
        service.try_get(path).await.assert_problem(code);
    }
    // A run at work is filtered like a stored one.
    let body = json!({"input": "hi", "model": "mock/gated", "mode": "async", "metadata": {"who": "ada"}});
    let run = service.post("/v1/runs", &body).await.json();
    service.gate.until_waiting(1).await;
    for (query, is_there) in [
        ("status=running&model=mock/gated", true),
        ("status=running&metadata.who=ada", true),
        ("status=running&metadata.who=bob", false),
        ("status=running&model=mock/echo", false),
    ] {
        let expected = if is_there {
            vec![run["run_id"].clone()]
        } else {
            Vec::new()
        };
        assert_eq!(found(&format!("/v1/runs?{query}"), "run_id").await, expected, "{query}");
    }
    service.gate.open(1);
    while service.get(&run_path(&run, "?wait=30s")).await["status"] != "completed" {}
}
