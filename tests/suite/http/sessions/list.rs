//! Sessions are listed by their place in the tree, and by their metadata.

use serde_json::json;

use super::{ids, line_of_sessions};
use crate::http::service::Service;

on_every_store! {
    the_tree_of_sessions_can_be_walked,
    each_message_leads_to_the_session_that_added_it,
    sessions_are_found_by_their_metadata,
}

async fn the_tree_of_sessions_can_be_walked(service: &Service) {
    let line = line_of_sessions(service, 4).await;
    let fork = service
        .run_with(json!({"input": "fork", "base_session_id": line[0]}))
        .await["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let lineage = service.rows(&format!("/v1/sessions/{}/lineage?limit=2", line[3])).await;
    assert_eq!(ids(&lineage), [&line[3], &line[2], &line[1], &line[0]]);
    let children = service
        .rows(&format!("/v1/sessions/{}/children?limit=1", line[0]))
        .await;
    assert_eq!(ids(&children), [&fork, &line[1]]);
    assert_eq!(ids(&service.rows("/v1/sessions?tips=true").await), [&fork, &line[3]]);
    assert_eq!(service.rows("/v1/sessions?limit=2").await.len(), 5);
    assert!(lineage[0].get("message_history_state").is_none());
    let verified = service.get(&format!("/v1/sessions/{}/verify", line[3])).await;
    assert_eq!(
        verified,
        json!({"session_id": line[3], "valid": true, "sessions": 4, "removed": 0, "messages": 8, "faults": []})
    );
}

async fn each_message_leads_to_the_session_that_added_it(service: &Service) {
    let line = line_of_sessions(service, 3).await;
    // A session without messages of its own, and a line that goes on after a fork.
    let body = json!({"changes": [{"path": "a", "content": "b"}]});
    let changed = service
        .post(&format!("/v1/sessions/{}/files", line[0]), &body)
        .await
        .ok();
    let fork = service
        .run_with(json!({"input": "fork", "base_session_id": changed["session_id"]}))
        .await["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    for (session, added_by) in [
        (
            &line[2],
            vec![&line[0], &line[0], &line[1], &line[1], &line[2], &line[2]],
        ),
        (&fork, vec![&line[0], &line[0], &fork, &fork]),
    ] {
        let path = format!("/v1/sessions/{session}/messages");
        for (index, expected) in added_by.iter().enumerate() {
            let shown = service.get(&format!("{path}/{index}/session")).await;
            let bare = service.get(&format!("/v1/sessions/{expected}?include=")).await;
            assert_eq!(shown, bare, "{index}");
        }
        let beyond = service.try_get(&format!("{path}/{}/session", added_by.len())).await;
        beyond.assert_problem_at("invalid_parameter", "index");
    }
}

async fn sessions_are_found_by_their_metadata(service: &Service) {
    for user in ["ann", "bob"] {
        service
            .run_with(json!({"input": "hi", "metadata": {"user": user, "n": 1}}))
            .await;
    }
    let count = async |query: &str| service.rows(&format!("/v1/sessions?limit=10&{query}")).await.len();
    assert_eq!(count("metadata.user=ann").await, 1);
    assert_eq!(count("metadata={\"n\":1}").await, 2);
    assert_eq!(count("metadata={\"n\":1}&metadata.user=bob&agent=demo").await, 1);
    assert_eq!(count("metadata.user=eve").await, 0);
    assert_eq!(count("created_until=2020-01-01T00:00:00Z").await, 0);
    assert_eq!(count("created_from=2020-01-01T00:00:00%2B01:00").await, 2);
}
