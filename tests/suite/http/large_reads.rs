//! Large responses: read in pieces, shared by many readers, and bounded together.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_runtime::store::Scope;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use super::service::Service;
use crate::support::answer::{Answer, read, with_json};
use crate::support::databases::TestDatabase;
use crate::support::logs::listen;
use crate::support::statements::Statements;
use crate::support::test_app::TestApp;

on_every_store! {
    a_long_history_is_read_whole_and_in_pages,
    a_long_difference_says_that_it_is_not_complete,
    large_agents_are_listed_a_few_at_a_time,
}

/// About how many bytes a page has.
const PAGE: usize = 1 << 20;

/// A session whose messages have these numbers of bytes.
pub(super) fn history(sizes: &[usize]) -> Value {
    let message = |(number, size): (usize, &usize)| {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        json!({"role": role, "content": format!("{number} {}", "x".repeat(*size))})
    };
    let messages: Vec<_> = sizes.iter().enumerate().map(message).collect();
    json!({"message_history_state": {"messages": messages}})
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
    assert_eq!(states["context_state"], whole["context_state"]);
    assert_eq!(states["environment_state"], whole["environment_state"]);

    for limit in [200, 7, 1] {
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = service.try_get(&format!("{path}/messages?limit={limit}{cursor}")).await;
            let page = answer.json();
            let data = page["data"].as_array().unwrap();
            assert!(!data.is_empty() && data.len() <= limit);
            assert_eq!((&page["from"], &page["total"]), (&json!(paged.len()), &json!(18)));
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

/// Compares two sessions. Returns the numbers of messages that both, only the left one and only the right one have, and whether that is
/// all.
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

async fn large_agents_are_listed_a_few_at_a_time(service: &Service) {
    let prompt = "x".repeat(900_000);
    let mut names: Vec<_> = (0..5).map(|number| format!("big{number}")).collect();
    for name in &names {
        let body = json!({"model": "mock/echo", "system_prompt": prompt});
        service.put_agent(name, body).await;
    }
    // The configured one.
    names.push("demo".to_owned());
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let answer = service.try_get(&format!("/v1/agents?limit=200{cursor}")).await;
        assert!(answer.body.len() < 2 * PAGE, "{} bytes", answer.body.len());
        let page = answer.ok();
        let data = page["data"].as_array().unwrap();
        seen.extend(data.iter().map(|agent| agent["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    seen.retain(|name| name != "echo");
    assert_eq!(seen, names);
}

/// A reader that asks for something, reads how the response begins, and then nothing more.
pub(super) async fn stop_reading(service: &TestApp, path: &str, key: Option<&str>) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(service.address).await.unwrap();
    let authorization = key.map_or(String::new(), |key| format!("authorization: Bearer {key}\r\n"));
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut begin = [0; 15];
    stream.read_exact(&mut begin).await.unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    stream
}

#[tokio::test]
async fn readers_who_do_not_read_leave_room_for_other_tenants() {
    let limits = [("http.max_bytes_in_flight", "25165824"), ("http.request_timeout", "1m")];
    let service = Service::start_with(&limits).await;
    let scopes = [Scope::SessionsRead, Scope::RunsWrite];
    let (_, slow) = service.make_key("slow", &scopes).await;
    let (_, other) = service.make_key("other", &scopes).await;
    let mut paths = Vec::new();
    for key in [&slow, &other] {
        let request = service.request(Method::POST, "/v1/sessions").bearer_auth(key);
        let made = read(with_json(request, &history(&[9_000_000]))).await.ok();
        paths.push(format!("/v1/sessions/{}", made["session_id"].as_str().unwrap()));
    }
    let get =
        async |path: &str, key: &str| -> Answer { read(service.request(Method::GET, path).bearer_auth(key)).await };
    let first = stop_reading(&service, &paths[0], Some(&slow)).await;
    let refused = get(&paths[0], &slow).await;
    refused.assert_problem("too_much_in_flight");
    assert_eq!(refused.header("retry-after"), "1");
    let messages = format!("{}/messages", paths[1]);
    for path in [&paths[1], &messages] {
        let answer = get(path, &other).await;
        assert_eq!((answer.status.as_u16(), answer.body.len() > 9_000_000), (200, true));
    }
    // What a reader holds is given back with its connection.
    drop(first);
    assert_eq!(get(&paths[0], &slow).await.status, 200);
    service.finish().await;
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
    assert_eq!((&diff["shared_messages"], &diff["complete"]), (&json!(0), &json!(true)));
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

#[tokio::test]
async fn many_readers_of_a_large_event_read_the_same() {
    let service =
        Service::start_with(&[("http.max_bytes_in_flight", "4194304"), ("store.acquire_timeout", "1m")]).await;
    let run = service.run_with(json!({"input": "x".repeat(200_000)})).await;
    let path = format!("/v1/runs/{}/events", run["run_id"].as_str().unwrap());
    // Together they read far more than may be in flight.
    let answers = join_all((0..15).map(|_| service.try_get(&path)));
    let answers = tokio::time::timeout(Duration::from_mins(5), answers).await.unwrap();
    let last = answers[0].text();
    assert!(last.ends_with("\n\n") && last.contains(run["output_text"].as_str().unwrap()));
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.body == answers[0].body, "{} bytes", answer.body.len());
    }
    service.finish().await;
}
