//! `DELETE /v1/sessions/{session_id}`: what it removes, what it refuses, and that nothing removed
//! is read from memory.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use test_support::wait::until;

use crate::http::service::Service;
use crate::support::answer::{Answer, read};

on_every_store! {
    a_removed_session_is_gone_at_once,
    a_continued_session_is_removed_with_all_that_continues_it,
    a_session_that_a_run_at_work_needs_stays,
    malformed_removals_are_refused,
    many_removals_at_once_stop_no_run_and_all_succeed,
}

async fn run(service: &Service, base: Option<&str>) -> (String, String) {
    let run = service.run_with(json!({"input": "hi", "base_session_id": base})).await;
    let text = |key: &str| run[key].as_str().unwrap().to_owned();
    (text("session_id"), text("run_id"))
}

async fn delete(service: &Service, path: &str) -> Answer {
    read(service.request(Method::DELETE, path)).await
}

async fn a_removed_session_is_gone_at_once(service: &Service) {
    let (session, run_id) = run(service, None).await;
    let path = format!("/v1/sessions/{session}");
    service.get(&path).await;
    let answer = delete(service, &path).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (204, 0));
    for below in ["", "/messages", "/lineage", "/children", "/verify"] {
        let answer = service.try_get(&format!("{path}{below}")).await;
        answer.assert_problem("session_not_found");
    }
    service
        .try_get(&format!("/v1/runs/{run_id}"))
        .await
        .assert_problem("run_not_found");
    let body = json!({"input": "on", "base_session_id": session});
    service
        .post("/v1/runs", &body)
        .await
        .assert_problem("session_not_found");
    delete(service, &path).await.assert_problem("session_not_found");
}

async fn a_continued_session_is_removed_with_all_that_continues_it(service: &Service) {
    let (root, _) = run(service, None).await;
    let (child, _) = run(service, Some(&root)).await;
    let (fork, _) = run(service, Some(&root)).await;
    let path = format!("/v1/sessions/{root}");
    delete(service, &path).await.assert_problem("session_has_descendants");
    service.get(&format!("/v1/sessions/{child}")).await;
    let answer = delete(service, &format!("{path}?descendants=true")).await;
    assert_eq!(answer.status, 204);
    for session in [root, child, fork] {
        let answer = service.try_get(&format!("/v1/sessions/{session}")).await;
        answer.assert_problem("session_not_found");
    }
    assert_eq!(service.get("/v1/runs").await["data"], json!([]));
}

async fn a_session_that_a_run_at_work_needs_stays(service: &Service) {
    let (session, _) = run(service, None).await;
    let path = format!("/v1/sessions/{session}");
    let body = json!({"input": "on", "model": "mock/gated", "base_session_id": session});
    let running = service.post("/v1/runs", &body);
    let removing = async {
        service.gate.until_waiting(1).await;
        let live = service.get("/v1/runs?status=running").await["data"][0]["run_id"].clone();
        let answer = delete(service, &path).await;
        answer.assert_problem("session_in_use");
        assert_eq!(answer.json()["run_id"], live);
        service.gate.open(1);
    };
    let (answer, ()) = tokio::join!(running, removing);
    let child = answer.ok()["session_id"].as_str().unwrap().to_owned();
    service.until_idle().await;
    assert_eq!(delete(service, &format!("/v1/sessions/{child}")).await.status, 204);
    assert_eq!(delete(service, &path).await.status, 204);
}

async fn malformed_removals_are_refused(service: &Service) {
    let (session, _) = run(service, None).await;
    for (path, code) in [
        ("/v1/sessions/x".to_owned(), "malformed_id"),
        (format!("/v1/sessions/{session}?descendants=maybe"), "invalid_parameter"),
        (format!("/v1/sessions/{session}?descendant=true"), "unknown_parameter"),
    ] {
        delete(service, &path).await.assert_problem(code);
    }
    service.get(&format!("/v1/sessions/{session}")).await;
}

/// More removals than the store has connections.
async fn many_removals_at_once_stop_no_run_and_all_succeed(service: &Service) {
    const MANY: usize = 16;
    let mut paths = Vec::new();
    for _ in 0..MANY {
        paths.push(format!("/v1/sessions/{}", run(service, None).await.0));
    }
    let stalled = service.database.stall_removals().await;
    let removing = join_all(paths.iter().map(|path| delete(service, path)));
    let beside = async {
        if let Some(stalled) = stalled {
            until("no removal waits", async || {
                service.database.waiting_clients().await > 0
            })
            .await;
            run(service, None).await;
            stalled.end().await;
        }
        for _ in 0..MANY {
            run(service, None).await;
        }
    };
    let (removed, ()) = tokio::join!(removing, beside);
    for answer in removed {
        assert_eq!(answer.status, 204, "{}", answer.text());
    }
    let left = service.get("/v1/sessions?limit=100").await;
    let left = left["data"].as_array().unwrap().len();
    assert!(left == MANY || left == MANY + 1, "{left}");
}
