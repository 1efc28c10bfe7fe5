//! Runs that refuse to share their base: what the one that comes too late is told.

use serde_json::json;

use super::service::Service;

on_every_store! {
    a_rival_is_refused_with_the_id_of_the_other_run,
    a_race_lost_at_the_commit_answers_as_the_refusal_does,
}

async fn a_rival_is_refused_with_the_id_of_the_other_run(service: &Service) {
    let base = service.run_with(json!({"input": "hi"})).await;
    let rival = json!({"input": "b", "base_session_id": base["session_id"], "conflict": "reject"});
    let gated = json!({"input": "a", "base_session_id": base["session_id"], "model": "mock/gated"});
    let running = service.post("/v1/runs", &gated);
    let refused = async {
        service.gate.until_waiting(1).await;
        let answer = service.post("/v1/runs", &rival).await;
        service.gate.open(1);
        answer
    };
    let (first, refused) = tokio::join!(running, refused);
    let first = first.ok();
    refused.assert_problem("base_session_conflict");
    assert_eq!(refused.json()["run_id"], first["run_id"]);
    // The other run has committed by now.
    let late = service.post("/v1/runs", &rival).await;
    late.assert_problem("base_session_conflict");
    assert_eq!(late.json()["run_id"], first["run_id"]);
}

async fn a_race_lost_at_the_commit_answers_as_the_refusal_does(service: &Service) {
    let base = service.run_with(json!({"input": "hi"})).await;
    let rival =
        json!({"input": "a", "base_session_id": base["session_id"], "model": "mock/gated", "conflict": "reject"});
    let running = service.post("/v1/runs", &rival);
    let winner = async {
        service.gate.until_waiting(1).await;
        let winner = service
            .run_with(json!({"input": "b", "base_session_id": base["session_id"]}))
            .await;
        service.gate.open(1);
        winner
    };
    let (lost, winner) = tokio::join!(running, winner);
    lost.assert_problem("base_session_conflict");
    assert_eq!(lost.json()["run_id"], winner["run_id"]);
}
