//! Long histories are read in pieces.

use std::collections::VecDeque;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::logs::listen;
use test_support::statements::Statements;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use crate::http::in_flight::{PAGE, history};
use crate::http::service::Service;
use crate::support::members::assert_members;
use crate::support::test_app::session_path;

on_every_store! {
    a_long_history_is_read_whole_and_in_pages,
    messages_are_read_backwards_over_many_changes_of_files,
}

async fn a_long_history_is_read_whole_and_in_pages(service: &Service) {
    let made = service.post("/v1/sessions", &history(&[200_000; 12])).await.ok();
    let mut session = made["session_id"].clone();
    for size in [3_000_000, 10, 600_000] {
        let body = json!({"input": "x".repeat(size), "base_session_id": session});
        session = service.run_with(body).await["session_id"].clone();
    }
    let path = format!("/v1/sessions/{}", session.as_str().unwrap());
    let whole = service.get(&path).await;
    let messages = whole["message_history_state"]["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &whole["message_count"]), (18, &json!(18)));
    assert_eq!(
        messages[..12],
        made["message_history_state"]["messages"].as_array().unwrap()[..]
    );
    let last = messages[17]["content"][0]["text"].as_str().unwrap();
    assert_eq!(last.len(), "echo: ".len() + 600_000);
    let states = service
        .get(&format!("{path}?include=context_state,environment_state"))
        .await;
    assert_members!(states, {"context_state": whole["context_state"], "environment_state": whole["environment_state"]});

    for limit in [200, 7, 1] {
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = service.try_get(&format!("{path}/messages?limit={limit}{cursor}")).await;
            let page = answer.json();
            let data = page["data"].as_array().unwrap();
            assert!(!data.is_empty() && data.len() <= limit);
            assert_members!(page, {"from": paged.len(), "total": 18});
            // The item that reaches the size of a page is the last.
            let before_last: usize = data[..data.len() - 1]
                .iter()
                .map(|message| message.to_string().len())
                .sum();
            assert!(before_last < PAGE, "{before_last}");
            paged.extend(data.iter().cloned());
            let Some(next) = page["next_cursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(paged, *messages, "{limit}");
    }

    for limit in [200, 7, 1] {
        let mut paged: VecDeque<_> = VecDeque::new();
        while paged.len() < messages.len() {
            let before = messages.len() - paged.len();
            let page = service
                .get(&format!("{path}/messages?before={before}&limit={limit}"))
                .await;
            let data = page["data"].as_array().unwrap();
            assert!(!data.is_empty() && data.len() <= limit);
            assert_members!(page, {"from": before - data.len(), "total": 18});
            // Read backwards, the item that reaches the size of a page is the last.
            let after_first: usize = data[1..].iter().map(|message| message.to_string().len()).sum();
            assert!(after_first < PAGE, "{after_first}");
            for message in data.iter().rev() {
                paged.push_front(message.clone());
            }
        }
        assert_eq!(Vec::from(paged), *messages, "{limit}");
    }
}

/// A list of segments has at most 256, and each change of files has one without messages.
async fn messages_are_read_backwards_over_many_changes_of_files(service: &Service) {
    let mut session = service.post("/v1/sessions", &history(&[10; 4])).await.ok()["session_id"].clone();
    for turn in 0..260 {
        let path = format!("/v1/sessions/{}/files", session.as_str().unwrap());
        let body = json!({"changes": [{"path": "turn", "content": turn.to_string()}]});
        session = service.post(&path, &body).await.ok()["session_id"].clone();
    }
    let body = json!({"input": "hi", "base_session_id": session});
    let run = service.run_with(body).await;
    let path = session_path(&run, "/messages");
    // A page forwards ends with the segments that one statement lists.
    let first = service.get(&path).await;
    assert_members!(first, {"from": 0, "total": 6, "data/3/content/0/text": "3 xxxxxxxxxx"});
    let last = service.get(&format!("{path}?before=6&limit=4")).await;
    assert_members!(last, {"from": 2, "total": 6, "data/3/content/0/text": "echo: hi"});
    assert_eq!(
        last["data"].as_array().unwrap()[..2],
        first["data"].as_array().unwrap()[2..]
    );
    let added_by = service.get(&format!("{path}/4/session")).await;
    assert_eq!(added_by["session_id"], run["session_id"]);
}

// One thread, so that the subscriber of this thread sees all of the driver's work.
#[tokio::test(flavor = "current_thread")]
async fn a_page_of_messages_takes_two_statements_and_each_that_follows_one() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let service = Service::start_on(database, &[]).await;
    let mut session = service.post("/v1/sessions", &history(&[10; 4])).await.ok()["session_id"].clone();
    for _ in 0..3 {
        let body = json!({"input": "x".repeat(PAGE), "base_session_id": session});
        session = service.run_with(body).await["session_id"].clone();
    }
    let path = format!("/v1/sessions/{}", session.as_str().unwrap());
    let statements = Statements::of(&["sessions", "history_segments"]);
    let _listening = listen(Registry::default().with(statements.clone()));
    for (request, expected, what) in [
        ("/messages?limit=3", 2, "the sizes of its segments and their messages"),
        ("/messages?from=5", 2, "the same from an index on"),
        ("/messages?from=10", 2, "nothing, and that there is the session"),
        ("/messages?before=9&limit=2", 3, "also the number of all messages"),
        ("/messages/9/session", 2, "the segment of the message and its session"),
        (
            "",
            6,
            "the states, their size, the sizes of all segments and three pages",
        ),
    ] {
        service.get(&format!("{path}{request}")).await;
        assert_eq!(statements.taken(), expected, "{what}");
    }
    service.finish().await;
}
