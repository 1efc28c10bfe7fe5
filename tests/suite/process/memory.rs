//! The memory of the process, as the kernel counts it: with readers that do not read, and with runs
//! that need much.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use store::open;
use test_support::databases::TestDatabase;
use test_support::drafts::{commit_of, user};
use test_support::gate::Gate;
use test_support::noise::noise;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use values::session::Bundle;
use values::tenant::TenantId;

use super::binary::{Home, PATIENCE};
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::mock_model::{MockModel, Reply, tool_results};

on_every_store!(
    slow_readers_of_a_large_session_take_no_more_than_the_bytes_in_flight,
    callers_who_read_no_events_take_no_more_than_the_bytes_in_flight,
    readers_of_the_end_of_one_run_share_it_in_memory,
);

const MEGABYTE: u64 = 1 << 20;
/// The memory of a process besides what is bounded: stacks, buffers, the caches of the store, and
/// what the allocator retains for each thread that decodes and encodes.
const SLACK: u64 = 80 * MEGABYTE;

/// A store with sessions that continue one another, each by a message of so many bytes, which is
/// the output of its run as well.
async fn store_line(database: TestDatabase, count: usize, bytes: usize) -> (TestDatabase, Vec<Arc<Bundle>>) {
    let store = open(database.url(), TestDatabase::settings()).await.unwrap();
    let mut line: Vec<Arc<Bundle>> = Vec::new();
    let noise = noise(0, bytes);
    for number in 0..count {
        // Each is compressed by itself, so that it gains nothing by what it shares with others.
        let text = format!("{number} {noise}");
        let commit = commit_of(&TenantId::anonymous(), line.last(), vec![user(&text)]);
        line.push(Arc::new(store.session_commit(&commit).await.unwrap().session));
    }
    store.close().await;
    (database, line)
}

/// Returns the most memory that the process ever had.
fn peak(service: &Service) -> u64 {
    memory(service, "VmHWM:")
}

/// Returns the memory that the process has now, without the pages of files.
fn resident(service: &Service) -> u64 {
    memory(service, "RssAnon:")
}

fn memory(service: &Service, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", service.process_id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kilobytes = line.trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() * 1024
}

/// Waits until the process is idle: it has used no processor time in five checks in a row.
async fn until_at_rest(service: &Service) {
    let worked = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", service.process_id())).unwrap();
        // What follows the name of the program begins with its third field; the times of user and
        // kernel are the 14th and the 15th.
        let fields = stat.rsplit(')').next().unwrap().split_whitespace();
        let times = fields.skip(11).take(2).map(|time| time.parse::<u64>().unwrap());
        times.sum::<u64>()
    };
    let resting = async {
        let (mut before, mut idle_rounds) = (worked(), 0);
        while idle_rounds < 5 {
            sleep(Duration::from_millis(100)).await;
            let now = worked();
            idle_rounds = if now == before { idle_rounds + 1 } else { 0 };
            before = now;
        }
    };
    timeout(PATIENCE, resting).await.expect("it never rests");
}

/// Asks for something and reads how the response begins, and then no more. One that is refused for
/// want of room tries again.
async fn begin_reading(service: &Service, path: &str) -> TcpStream {
    loop {
        if let Some(stream) = try_reading(service, path).await {
            return stream;
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Asks for something and reads how the response begins, and then no more; `None` if it is refused
/// since there is no room.
async fn try_reading(service: &Service, path: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(service.address.parse().unwrap()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", service.address);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await.unwrap();
    match &begin {
        b"HTTP/1.1 200" => Some(stream),
        b"HTTP/1.1 503" => None,
        _ => panic!("{}", String::from_utf8_lossy(&begin)),
    }
}

/// Reads a response to its end, and returns its bytes.
async fn read_whole(service: &Service, path: &str) -> u64 {
    let mut response = service.request(Method::GET, path).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let mut bytes = 0;
    while let Some(chunk) = response.chunk().await.unwrap() {
        bytes += chunk.len() as u64;
    }
    bytes
}

/// Reads on, a little at a time, for a while.
async fn read_slowly(mut stream: TcpStream) {
    let mut some = vec![0; 16 << 10];
    for _ in 0..50 {
        stream.read_exact(&mut some).await.unwrap();
        sleep(Duration::from_millis(20)).await;
    }
}

async fn slow_readers_of_a_large_session_take_no_more_than_the_bytes_in_flight(database: TestDatabase) {
    const COUNT: usize = 8;
    const BYTES: usize = 3_000_000;
    let (database, line) = store_line(database, COUNT, BYTES).await;
    let budget = 80 * MEGABYTE;
    let home = Home::new(database.url()).variable("AGENT_RUNTIME__HTTP__MAX_BYTES_IN_FLIGHT", &budget.to_string());
    let service = Service::start(&home).await;
    let path = format!("/v1/sessions/{}", line[COUNT - 1].head.session_id);
    let at_rest = peak(&service);
    // One who reads at once costs pages, and not the session.
    assert!(read_whole(&service, &path).await > (COUNT * BYTES) as u64);
    let of_one = peak(&service) - at_rest;
    assert!(of_one < SLACK, "{of_one} bytes");
    let readers = join_all((0..10).map(|_| begin_reading(&service, &path)));
    let readers = timeout(4 * PATIENCE, readers).await.unwrap();
    join_all(readers.into_iter().map(read_slowly)).await;
    let of_ten = peak(&service) - at_rest;
    // One tenant has half of the room.
    assert!(of_ten < budget / 2 + SLACK, "{of_ten} bytes");
    // Far more than there is room for: some of them are refused.
    let many = join_all((0..80).map(|_| try_reading(&service, &path)));
    let many = timeout(4 * PATIENCE, many).await.unwrap();
    until_at_rest(&service).await;
    let of_many = peak(&service) - at_rest;
    assert!(of_many < budget + SLACK, "{of_many} bytes");
    drop(many);
    // What they held is given back with their connections.
    assert!(read_whole(&service, &path).await > (COUNT * BYTES) as u64);
    service.stop().await;
}

async fn callers_who_read_no_events_take_no_more_than_the_bytes_in_flight(database: TestDatabase) {
    // Each has an end of its own, which has the text twice: more than the system takes from a
    // process for one connection. Together they are far more than what is allowed.
    const RUNS: usize = 60;
    const BYTES: usize = 1_500_000;
    // The memory of concurrent reads before they wait for room: four of one tenant, each with the
    // text as it is stored, as JSON, in the record and in the event.
    const READS: u64 = 4 * 8 * BYTES as u64;
    let (database, line) = store_line(database, RUNS, BYTES).await;
    let budget = 16 * MEGABYTE;
    let home = Home::new(database.url()).variable("AGENT_RUNTIME__HTTP__MAX_BYTES_IN_FLIGHT", &budget.to_string());
    let service = Service::start(&home).await;
    let at_rest = peak(&service);
    let mut callers = Vec::new();
    for _ in 0..2 {
        let ask = line.iter().map(|bundle| {
            let path = format!("/v1/runs/{}/events", bundle.head.run_id.unwrap());
            let service = &service;
            async move { begin_reading(service, &path).await }
        });
        callers.extend(timeout(4 * PATIENCE, join_all(ask)).await.unwrap());
    }
    until_at_rest(&service).await;
    let taken = peak(&service) - at_rest;
    assert!(
        taken < budget / 2 + READS + SLACK,
        "{taken} bytes for {} callers",
        callers.len()
    );
    // Small responses do not wait.
    let (status, _) = timeout(PATIENCE, service.call(Method::GET, "/healthz", None))
        .await
        .unwrap();
    assert_eq!(status, 200);
    // A reader that continues gets all of it, once the others are gone.
    let mut one = callers.pop().unwrap();
    drop(callers);
    let mut text = Vec::new();
    let reading = async {
        let mut some = vec![0; 64 << 10];
        while !text.ends_with(b"0\r\n\r\n") {
            let count = one.read(&mut some).await.unwrap();
            assert!(count > 0, "the stream broke off");
            text.extend_from_slice(&some[..count]);
        }
    };
    timeout(PATIENCE, reading).await.unwrap();
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("event: run.completed") && text.len() > BYTES,
        "{} bytes",
        text.len()
    );
    service.stop().await;
}

async fn readers_of_the_end_of_one_run_share_it_in_memory(database: TestDatabase) {
    const READERS: usize = 40;
    const BYTES: usize = 3_000_000;
    let (database, line) = store_line(database, 1, BYTES).await;
    // Enough for each of them to have its own.
    let budget = 4_000 * MEGABYTE;
    let home = Home::new(database.url()).variable("AGENT_RUNTIME__HTTP__MAX_BYTES_IN_FLIGHT", &budget.to_string());
    let service = Service::start(&home).await;
    let path = format!("/v1/runs/{}/events", line[0].head.run_id.unwrap());
    // What one of them takes on the way to the end, as often as it wants.
    let text = read_whole(&service, &path).await;
    assert!(text > BYTES as u64);
    let of_one = peak(&service);
    let readers = (0..READERS).map(async |_| {
        let mut stream = begin_reading(&service, &path).await;
        let mut text = Vec::new();
        while !String::from_utf8_lossy(&text).contains("event: run.completed") {
            assert!(stream.read_buf(&mut text).await.unwrap() > 0, "the stream ended early");
        }
        stream
    });
    let readers = timeout(4 * PATIENCE, join_all(readers)).await.unwrap();
    let of_all = peak(&service) - of_one;
    assert!(of_all < SLACK, "{of_all} bytes for {} readers", readers.len());
    service.stop().await;
}

#[tokio::test]
async fn a_stream_in_progress_takes_little_memory() {
    // Opened first, so that the rest of the process has the memory that it needs.
    const FIRST: usize = 50;
    const MORE: usize = 200;
    /// The memory of a stream: both connections, the run, its state and its events.
    const EACH: u64 = 115 << 10;
    let gate = Gate::new();
    let behind = Arc::clone(&gate);
    let mock = MockModel::start(move |_| Reply::HeldAtEnd(Arc::clone(&behind), vec!["word".to_owned()]));
    let mock = mock.await;
    let home = Home::with_file().with_mock(&mock);
    let service = Service::start(&home).await;
    let open = async |count| {
        let opening = (0..count).map(async |_| {
            let mut events = service.stream(json!({"input": "go"})).await;
            events.until("message.delta").await;
            events
        });
        let streams = join_all(opening).await;
        until_at_rest(&service).await;
        streams
    };
    let mut streams = open(FIRST).await;
    let before = resident(&service);
    streams.extend(open(MORE).await);
    let each = (resident(&service) - before) / MORE as u64;
    assert!(each < EACH, "{each} bytes for each stream");
    gate.open(FIRST + MORE);
    for events in streams {
        let last = events.rest().await.pop().unwrap();
        assert_eq!(last["type"], "run.completed");
    }
    service.stop().await;
}

#[tokio::test]
async fn a_run_of_many_levels_of_agents_takes_memory_by_its_record() {
    const LEVELS: usize = 4;
    /// Each completion calls so many agents of the next level.
    const CALLS: usize = 50;
    const TASK: usize = 2 << 10;
    let record = 8 * MEGABYTE;
    let call = |number| {
        let arguments = json!({"task": noise(number, TASK)}).to_string();
        (format!("c{number}"), "below".to_owned(), arguments)
    };
    let (calls, words): (Vec<_>, _) = ((0..CALLS).map(call).collect(), noise(CALLS, CALLS * TASK));
    let last = format!("level{LEVELS}");
    let mock = MockModel::start(move |request| match request["model"].as_str().unwrap() {
        model if model == last => Reply::text(&words),
        _ if !tool_results(request).is_empty() => Reply::text("done"),
        _ => Reply::ToolCalls(calls.clone()),
    });
    let mock = mock.await;
    let home = Home::with_file()
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__RUNS__MAX_SUBAGENTS", "600")
        .variable("AGENT_RUNTIME__RUNS__MAX_RECORD_BYTES", &record.to_string())
        .variable("AGENT_RUNTIME__BOARD__MAX_RUN_EVENT_BYTES", &MEGABYTE.to_string());
    for level in 0..=LEVELS {
        let below =
            (level < LEVELS).then(|| format!("subagents = [{{ agent = 'level{}', tool = 'below' }}]", level + 1));
        let agent = format!(
            "model = 'mock/level{level}'\nmax_depth = {LEVELS}\n{}\n",
            below.unwrap_or_default()
        );
        home.write(&format!("config/agents/level{level}.toml"), &agent);
    }
    let service = Service::start(&home).await;
    let at_rest = peak(&service);
    let body = json!({"agent": "level0", "input": "go"});
    let (_, result) = service.call(Method::POST, "/v1/runs", Some(body)).await;
    let taken = peak(&service) - at_rest;
    assert_eq!(result["stop_reason"], "stop_requested", "{result:#}");
    // While a record is stored it exists several times: in the steps, in the sessions of all
    // agents, as JSON and compressed.
    assert!(taken < 10 * record + SLACK, "{taken} bytes");
    service.stop().await;
}
