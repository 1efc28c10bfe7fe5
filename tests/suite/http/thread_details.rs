//! Threads that callers create: with a title and metadata, and before their first run.

use reqwest::Method;
use serde_json::{Value, json};

use super::service::{NOWHERE, Service};
use crate::support::answer::{Answer, read, with_json};
use crate::support::members::{assert_members, column};
use crate::support::test_app::run_path;

on_every_store! {
    a_thread_is_created_before_its_first_run,
    a_thread_is_created_once,
    bad_threads_are_refused,
    the_title_and_the_metadata_change,
    threads_are_found_by_metadata_agent_and_time,
    a_session_names_its_thread,
}

async fn create(service: &Service, body: Value) -> Answer {
    service.post("/v1/threads", &body).await
}

async fn patch(service: &Service, name: &str, body: Value) -> Answer {
    let request = service.request(Method::PATCH, &format!("/v1/threads/{name}"));
    read(with_json(request, &body)).await
}

async fn a_thread_is_created_before_its_first_run(service: &Service) {
    let body = json!({"name": "ada", "title": "Sums", "metadata": {"user": "ada"}});
    let created = create(service, body).await;
    assert_eq!(
        (created.status.as_u16(), created.header("location")),
        (201, "/v1/threads/ada")
    );
    let created = created.ok();
    assert_members!(created, {
        "name": "ada", "title": "Sums", "metadata": {"user": "ada"}, "session_id": null, "agent": null,
        "message_count": 0, "run_count": 0, "version": 0, "updated_at": created["created_at"],
    });
    assert_eq!(service.get("/v1/threads/ada").await, created);
    let run = service.run_with(json!({"thread": "ada", "input": "hi"})).await;
    assert_members!(run, {"base_session_id": null, "metadata": {}});
    let moved = service.get("/v1/threads/ada").await;
    assert_members!(moved, {
        "title": "Sums", "metadata": {"user": "ada"}, "session_id": run["session_id"], "agent": "demo",
        "message_count": 2, "run_count": 1, "version": 1, "created_at": created["created_at"],
    });
    // The service makes up a name, and a thread may begin at a session.
    let beside = create(service, json!({"session_id": run["session_id"]})).await.ok();
    assert_members!(beside, {"session_id": run["session_id"], "title": null, "metadata": {}, "version": 1});
    let path = format!("/v1/threads/{}", beside["name"].as_str().unwrap());
    assert_eq!(service.get(&path).await, beside);
}

async fn a_thread_is_created_once(service: &Service) {
    let created = create(service, json!({"name": "t", "title": "First"})).await.ok();
    for body in [json!({"name": "t"}), json!({"name": "t", "session_id": NOWHERE})] {
        create(service, body).await.assert_problem("thread_exists");
    }
    assert_eq!(service.get("/v1/threads/t").await, created);
    create(service, json!({"name": "u", "session_id": NOWHERE}))
        .await
        .assert_problem("session_not_found");
    service
        .try_get("/v1/threads/u")
        .await
        .assert_problem("thread_not_found");
    // A repeated request is answered like the first one, also if the thread has moved since.
    for (key, body) in [
        ("k-1", json!({"title": "Made up"})),
        ("k-2", json!({"name": "v", "title": "Given"})),
    ] {
        let first = service.post_keyed("/v1/threads", key, &body).await;
        assert_eq!((first.status.as_u16(), first.header("idempotency-replayed")), (201, ""));
        let name = first.json()["name"].clone();
        service.run_with(json!({"thread": name, "input": "hi"})).await;
        let second = service.post_keyed("/v1/threads", key, &body).await;
        assert_eq!(
            (second.status.as_u16(), second.header("idempotency-replayed")),
            (201, "true")
        );
        assert_members!(second.ok(), {"name": name, "title": body["title"], "run_count": 1});
    }
    // A refused request claims no key.
    let taken = json!({"name": "t", "title": "Another"});
    for _ in 0..2 {
        let refused = service.post_keyed("/v1/threads", "k-3", &taken).await;
        refused.assert_problem("thread_exists");
    }
    let other = json!({"title": "Other"});
    assert_eq!(service.post_keyed("/v1/threads", "k-3", &other).await.status, 201);
    assert_eq!(service.get("/v1/threads").await["data"].as_array().unwrap().len(), 4);
}

async fn bad_threads_are_refused(service: &Service) {
    let long = "x".repeat(257);
    let large = json!({"a": "x".repeat(17_000)});
    for (body, code, pointer) in [
        (json!({"name": "a b"}), "invalid_field", "/name"),
        (json!({"title": ""}), "invalid_field", "/title"),
        (json!({"title": long}), "invalid_field", "/title"),
        (json!({"metadata": large}), "invalid_field", "/metadata"),
        (json!({"metadata": []}), "invalid_field", "/metadata"),
        (json!({"session_id": "x"}), "malformed_id", "/session_id"),
        (json!({"titel": "x"}), "unknown_field", "/titel"),
    ] {
        create(service, body).await.assert_problem_at(code, pointer);
    }
    assert_eq!(service.get("/v1/threads").await["data"], json!([]));
    create(service, json!({"name": "t", "metadata": {"b": "x".repeat(9_000)}}))
        .await
        .ok();
    for (body, code, pointer) in [
        (json!({"title": long}), "invalid_field", "/title"),
        (
            json!({"metadata": {"a": "x".repeat(9_000)}}),
            "invalid_field",
            "/metadata",
        ),
        (json!({"session_id": NOWHERE}), "unknown_field", "/session_id"),
    ] {
        patch(service, "t", body).await.assert_problem_at(code, pointer);
    }
    let thread = service.get("/v1/threads/t").await;
    assert_members!(thread, {"title": null, "metadata": {"b": "x".repeat(9_000)}});
    for name in ["nobody", "a%20b"] {
        let answer = patch(service, name, json!({"title": "x"})).await;
        answer.assert_problem("thread_not_found");
    }
}

async fn the_title_and_the_metadata_change(service: &Service) {
    let run = service.run_with(json!({"thread": "t", "input": "hi"})).await;
    for (body, title, metadata) in [
        (
            json!({"title": "New", "metadata": {"a": 1, "b": {"c": 2}}}),
            json!("New"),
            json!({"a": 1, "b": {"c": 2}}),
        ),
        (json!({"metadata": {"a": null, "b": 3}}), json!("New"), json!({"b": 3})),
        (json!({}), json!("New"), json!({"b": 3})),
        (json!({"title": null}), Value::Null, json!({"b": 3})),
        (json!({"metadata": null}), Value::Null, json!({})),
    ] {
        let patched = patch(service, "t", body).await.ok();
        assert_members!(patched, {
            "title": title, "metadata": metadata, "session_id": run["session_id"], "version": 1,
        });
        assert_eq!(service.get("/v1/threads/t").await, patched);
    }
    // An active run is not in the way, and the title outlives it.
    let body = json!({"thread": "t", "input": "hi", "model": "mock/gated", "mode": "async"});
    let run = service.post("/v1/runs", &body).await.json();
    service.gate.until_waiting(1).await;
    patch(service, "t", json!({"title": "Meanwhile"})).await.ok();
    service.gate.open(1);
    while service.get(&run_path(&run, "?wait=30s")).await["status"] != "completed" {}
    let thread = service.get("/v1/threads/t").await;
    assert_members!(thread, {"title": "Meanwhile", "session_id": run["session_id"], "run_count": 2});
}

async fn threads_are_found_by_metadata_agent_and_time(service: &Service) {
    for (name, user) in [("a", "ada"), ("b", "bob"), ("c", "ada")] {
        let body = json!({"name": name, "metadata": {"user": user, "n": 1}});
        create(service, body).await.ok();
    }
    service.run_with(json!({"thread": "b", "input": "hi"})).await;
    let b = service.get("/v1/threads/b").await;
    let [created, updated] = ["created_at", "updated_at"].map(|field| b[field].as_str().unwrap().replace('+', "%2B"));
    for (query, names) in [
        ("metadata.user=ada".to_owned(), &["a", "c"][..]),
        (r#"metadata={"n":1,"user":"bob"}"#.to_owned(), &["b"][..]),
        ("metadata.user=eve".to_owned(), &[][..]),
        ("agent=demo".to_owned(), &["b"][..]),
        ("agent=other".to_owned(), &[][..]),
        ("agent=demo&metadata.user=ada".to_owned(), &[][..]),
        (format!("created_from={created}"), &["b", "c"][..]),
        (format!("created_until={created}"), &["a"][..]),
        (format!("updated_from={updated}"), &["b"][..]),
        (format!("updated_until={updated}"), &["a", "c"][..]),
    ] {
        let list = service.get(&format!("/v1/threads?{query}")).await;
        assert_eq!(column(&list["data"], "name"), names, "{query}");
    }
    let pages = service.pages("/v1/threads?metadata.user=ada&limit=1").await;
    let names: Vec<_> = pages.iter().map(|page| column(&page["data"], "name")).collect();
    assert_eq!(names, [["a"], ["c"]]);
    for (query, parameter) in [("created_from=soon", "created_from"), ("metadata=7", "metadata")] {
        let answer = service.try_get(&format!("/v1/threads?{query}")).await;
        answer.assert_problem_at("invalid_parameter", parameter);
    }
}

async fn a_session_names_its_thread(service: &Service) {
    let alone = service.run_with(json!({"input": "hi"})).await;
    let on_thread = service.run_with(json!({"thread": "t", "input": "hi"})).await;
    for (run, thread) in [(&alone, Value::Null), (&on_thread, json!("t"))] {
        let id = run["session_id"].as_str().unwrap();
        let session = service.get(&format!("/v1/sessions/{id}")).await;
        assert_eq!(session["thread"], thread);
        let list = service.get("/v1/sessions").await;
        let mut listed = list["data"].as_array().unwrap().iter();
        let listed = listed.find(|session| session["session_id"] == id).unwrap();
        assert_eq!(listed["thread"], thread);
    }
}
