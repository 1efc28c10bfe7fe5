//! Sessions are compared, however large they are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::line_of_sessions;
use crate::http::in_flight::{PAGE, history};
use crate::http::service::Service;
use crate::support::members::assert_members;

on_every_store! {
    two_sessions_are_compared,
    a_long_difference_says_that_it_is_not_complete,
}

async fn two_sessions_are_compared(service: &Service) {
    let line = line_of_sessions(service, 2).await;
    let fork = service
        .run_with(json!({"input": "fork", "base_session_id": line[0], "variables": {"x": 1}}))
        .await;
    let diff = service
        .get(&format!(
            "/v1/sessions/{}/diff/{}",
            line[1],
            fork["session_id"].as_str().unwrap()
        ))
        .await;
    assert_members!(diff, {"left_session_id": line[1], "right_session_id": fork["session_id"], "shared_messages": 2});
    assert_eq!(
        (
            diff["left_messages"].as_array().unwrap().len(),
            diff["right_messages"].as_array().unwrap().len()
        ),
        (2, 2)
    );
    let changes = json!([{"path": "/variables/turn", "left": 1, "right": 0}, {"path": "/variables/x", "right": 1}]);
    assert_eq!(diff["environment"], changes);
}

/// Compares two sessions. Returns the number of messages that both have, the numbers of those that
/// only the left one and only the right one have, and whether that is all.
async fn compare(service: &Service, left: &Value, right: &Value) -> (Value, [usize; 2], Value) {
    let [left, right] = [left, right].map(|session| session["session_id"].as_str().unwrap());
    let answer = service.try_get(&format!("/v1/sessions/{left}/diff/{right}")).await;
    // Four lists, the last item of each of 200 kB at most.
    assert!(answer.body.len() < 4 * (PAGE + 201_000), "{} bytes", answer.body.len());
    let diff = answer.ok();
    let count = |side: &str| diff[side].as_array().unwrap().len();
    (
        diff["shared_messages"].clone(),
        [count("left_messages"), count("right_messages")],
        diff["complete"].clone(),
    )
}

async fn a_long_difference_says_that_it_is_not_complete(service: &Service) {
    let import = async |body: Value| service.post("/v1/sessions", &body).await.ok();
    let (left, right) = (
        import(history(&[200_000; 12])).await,
        import(history(&[200_000; 7])).await,
    );
    // The sixth message reaches the size of a page.
    assert_eq!(compare(service, &left, &right).await, (json!(0), [6, 6], json!(false)));
    assert_eq!(compare(service, &left, &left).await, (json!(12), [0, 0], json!(true)));
    let mut forks = Vec::new();
    for size in [10, 600_000] {
        let body = json!({"input": "x".repeat(size), "base_session_id": left["session_id"]});
        forks.push(service.run_with(body).await);
    }
    let short = service
        .run_with(json!({"input": "on", "base_session_id": forks[0]["session_id"]}))
        .await;
    assert_eq!(
        compare(service, &short, &forks[0]).await,
        (json!(14), [2, 0], json!(true))
    );
    assert_eq!(compare(service, &left, &short).await, (json!(12), [0, 4], json!(true)));

    // Values of the environment that differ are cut likewise.
    let with_notes = |text: &str| {
        let mut body = history(&[10]);
        let notes: BTreeMap<_, _> = (0..20).map(|key| (format!("key{key}"), text.repeat(100_000))).collect();
        body["environment_state"] = json!(notes);
        body
    };
    let (left, right) = (import(with_notes("l")).await, import(with_notes("r")).await);
    let path = |side: &Value| side["session_id"].as_str().unwrap().to_owned();
    let diff = service
        .get(&format!("/v1/sessions/{}/diff/{}", path(&left), path(&right)))
        .await;
    // Two values of 100 kB each.
    let changes = diff["environment"].as_array().unwrap();
    assert_eq!((changes.len(), &diff["complete"]), (6, &json!(false)));
    assert_eq!(changes[0]["path"], "/key0");
}

#[tokio::test]
async fn sessions_of_which_each_takes_all_the_room_are_compared() {
    let service = Service::start_with(&[("http.max_bytes_in_flight", "6291456")]).await;
    let mut ids = Vec::new();
    for size in [2_000_000, 2_000_001] {
        let mut body = history(&[size]);
        body["environment_state"] = json!({"variables": {"note": "x".repeat(size - 1_800_000)}});
        let made = service.post("/v1/sessions", &body).await.ok();
        ids.push(made["session_id"].as_str().unwrap().to_owned());
    }
    let diff = service.get(&format!("/v1/sessions/{}/diff/{}", ids[0], ids[1])).await;
    assert_members!(diff, {"shared_messages": 0, "complete": true});
    for (side, size) in [("left", 2_000_000), ("right", 2_000_001)] {
        let messages = diff[format!("{side}_messages")].as_array().unwrap();
        let text = messages[0]["content"][0]["text"].as_str().unwrap();
        assert_eq!((messages.len(), text.len()), (1, "0 ".len() + size));
        let change = &diff["environment"][0];
        assert_eq!(
            (&change["path"], change[side].as_str().unwrap().len()),
            (&json!("/variables/note"), size - 1_800_000)
        );
    }
    service.finish().await;
}
