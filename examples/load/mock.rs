//! A model server for load: chat completions as OpenAI defines them, streaming and plain, as fast
//! as axum goes. It reads next to nothing of a request, so that the service and not the mock is
//! measured.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::wire_counter::{Passed, WireCounter};
use crate::words::words;

/// Completes at once.
pub(crate) const FAST: &str = "mock";
/// Waits, then sends token by token.
pub(crate) const PACED: &str = "paced";
/// Sends like the paced one, with [`SLOW_PAUSE`] before each token.
pub(crate) const SLOW: &str = "slow";
/// Completes at once, with [`LARGE_TOKENS`] tokens of a megabyte.
pub(crate) const LARGE: &str = "large";
/// Asks at once for as many calls of the tool [`CALLED_TOOL`] as a step may have, and is content
/// with any results.
pub(crate) const CALLING: &str = "calling";
/// Sends one token, then waits for the gate.
pub(crate) const HELD: &str = "held";
/// Calls [`READING_TOOL`] in three steps, one call in each, and then answers.
pub(crate) const READING: &str = "reading";
/// Calls [`WRITING_TOOL`] likewise.
pub(crate) const WRITING: &str = "writing";
/// Answers with [`WORDY_BYTES`] of random words.
pub(crate) const WORDY: &str = "wordy";

/// A built-in tool that only reads.
pub(crate) const READING_TOOL: &str = "current_time";
/// A built-in tool that has an effect.
pub(crate) const WRITING_TOOL: &str = "variables_set";
/// The steps of a run that have a call.
const TOOL_STEPS: usize = 3;
/// With a message of the user of the same size, 200 turns have 412 KB.
pub(crate) const WORDY_BYTES: usize = 1055;

/// The name of the threads on which the model runs, by which their processor time is told from
/// that of the clients.
pub(crate) const THREADS: &str = "mock-model";

/// The pause of the slow provider.
pub(crate) const SLOW_PAUSE: Duration = Duration::from_millis(250);

/// The tool that the calling provider wants.
pub(crate) const CALLED_TOOL: &str = "below";
const CALLS: usize = 50;
const LARGE_TOKENS: usize = 9;

/// The text before a probe's number in the words of the user.
const PROBE: &[u8] = b"probe-";

/// The text that each result of a tool has in a request.
const RESULT: &[u8] = b"\"role\":\"tool\"";

/// The bytes at the end of a request that are read.
const RETAINED: usize = 4 << 10;

/// How the paced provider speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The number of tokens of every completion.
    pub(crate) tokens: usize,
    /// The pause before the first one.
    pub(crate) first: Duration,
    /// The pause before each further one.
    pub(crate) next: Duration,
}

/// A running server; it ends with the process.
#[derive(Debug, Clone)]
pub(crate) struct MockModel {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pace: Pace,
    frames: Frames,
    large: Bytes,
    calls: Bytes,
    reading: Bytes,
    writing: Bytes,
    gate: watch::Sender<bool>,
    arrivals: Mutex<HashMap<u64, Arrival>>,
    counter: Mutex<Option<WireCounter>>,
    first_tokens: Mutex<HashMap<u64, Instant>>,
}

/// A request that arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// When it arrived.
    pub(crate) at: Instant,
    /// The traffic between the service and its database by then, where it is counted.
    pub(crate) passed: Option<Passed>,
}

/// The response, encoded beforehand.
#[derive(Debug)]
struct Frames {
    head: Bytes,
    token: Bytes,
    tail: Bytes,
    whole: Bytes,
    plain: Bytes,
}

/// Starts the threads for a model, which end with the process.
pub(crate) fn threads() -> Result<Handle> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.thread_name(THREADS).enable_all().build()?;
    // To drop it is an error here, also where something else fails.
    Ok(Box::leak(Box::new(runtime)).handle().clone())
}

impl MockModel {
    /// Starts the server on a free loopback port.
    pub(crate) async fn start(pace: Pace) -> Result<Self> {
        let shared = Arc::new(Shared {
            pace,
            frames: Frames::new(pace.tokens, "sunny "),
            large: Frames::new(LARGE_TOKENS, &"x".repeat(1_000_000)).whole,
            calls: calls(CALLED_TOOL, &json!({"task": "work"}), CALLS),
            reading: calls(READING_TOOL, &json!({}), 1),
            writing: calls(WRITING_TOOL, &json!({"variables": {"weather": "sunny"}}), 1),
            gate: watch::Sender::new(false),
            arrivals: Mutex::default(),
            counter: Mutex::default(),
            first_tokens: Mutex::default(),
        });
        let router = Router::new()
            .route("/{provider}/v1/chat/completions", post(complete))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let listener = listener.tap_io(|stream| {
            // A token that waits for another would count against the service.
            let _ = stream.set_nodelay(true);
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, shared })
    }

    /// Starts another server that speaks like this one, on the runtime that this is called on.
    pub(crate) async fn another(&self) -> Result<Self> {
        Self::start(self.shared.pace).await
    }

    /// Lists the providers with their base URLs.
    pub(crate) fn providers(&self) -> impl Iterator<Item = (&'static str, String)> {
        [FAST, PACED, SLOW, LARGE, CALLING, HELD, READING, WRITING, WORDY]
            .into_iter()
            .map(|name| (name, self.base_url(name)))
    }

    /// Returns the base URL of a provider.
    pub(crate) fn base_url(&self, provider: &str) -> String {
        format!("http://{}/{provider}/v1", self.address)
    }

    /// Records the counter at each arrival.
    pub(crate) fn set_counter(&self, counter: WireCounter) {
        *lock(&self.shared.counter) = Some(counter);
    }

    /// Takes the arrival of the request with the probe.
    pub(crate) fn take_arrival(&self, probe: u64) -> Option<Arrival> {
        lock(&self.shared.arrivals).remove(&probe)
    }

    /// Takes the time at which the first token of the response to the probe was handed to the
    /// connection.
    pub(crate) fn take_first_token(&self, probe: u64) -> Option<Instant> {
        lock(&self.shared.first_tokens).remove(&probe)
    }

    /// Lets the held responses continue, or holds further ones.
    pub(crate) fn set_gate(&self, open: bool) {
        self.shared.gate.send_replace(open);
    }
}

/// Returns words of a user that carry a number.
pub(crate) fn probe(number: u64) -> String {
    format!("What is the weather like? probe-{number}.")
}

async fn complete(State(shared): State<Arc<Shared>>, Path(provider): Path<String>, body: Body) -> Response {
    let Ok(end) = end_of(body).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let probe = probe_of(&end);
    if let Some(probe) = probe {
        let arrival = Arrival {
            at: Instant::now(),
            passed: lock(&shared.counter).as_ref().map(WireCounter::passed),
        };
        lock(&shared.arrivals).insert(probe, arrival);
    }
    if !contains(&end, b"\"stream\":true") {
        return (
            [(header::CONTENT_TYPE, "application/json")],
            shared.frames.plain.clone(),
        )
            .into_response();
    }
    let answer = match provider.as_str() {
        FAST => Body::from(shared.frames.whole.clone()),
        LARGE => Body::from(shared.large.clone()),
        CALLING if results_in(&end) > 0 => Body::from(shared.frames.whole.clone()),
        CALLING => Body::from(shared.calls.clone()),
        READING | WRITING if results_in(&end) >= TOOL_STEPS => Body::from(shared.frames.whole.clone()),
        READING => Body::from(shared.reading.clone()),
        WRITING => Body::from(shared.writing.clone()),
        WORDY => Body::from(wordy()),
        PACED => slow_answer(shared.pace, shared, false, probe),
        HELD => slow_answer(shared.pace, shared, true, probe),
        SLOW => {
            let pace = Pace {
                next: SLOW_PAUSE,
                ..shared.pace
            };
            slow_answer(pace, shared, false, probe)
        }
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    ([(header::CONTENT_TYPE, "text/event-stream")], answer).into_response()
}

fn slow_answer(pace: Pace, shared: Arc<Shared>, held: bool, probe: Option<u64>) -> Body {
    let last = pace.tokens + 1;
    let frames = stream::iter(0..=last).then(move |number| {
        let shared = Arc::clone(&shared);
        async move {
            match number {
                0 => return Ok::<_, Infallible>(shared.frames.head.clone()),
                1 => tokio::time::sleep(pace.first).await,
                2 if held => wait_for_gate(&shared.gate).await,
                _ if held => (),
                _ => tokio::time::sleep(pace.next).await,
            }
            if let (1, Some(probe)) = (number, probe) {
                lock(&shared.first_tokens).insert(probe, Instant::now());
            }
            Ok(if number == last {
                shared.frames.tail.clone()
            } else {
                shared.frames.token.clone()
            })
        }
    });
    Body::from_stream(frames)
}

async fn wait_for_gate(gate: &watch::Sender<bool>) {
    // The sender outlives every response, so this can't fail.
    let _ = gate.subscribe().wait_for(|open| *open).await;
}

/// Reads a request to its end and retains the end alone. It has the newest text of the user, and
/// then whether the response is a stream. The messages before may have megabytes.
async fn end_of(body: Body) -> Result<Vec<u8>, axum::Error> {
    let mut pieces = body.into_data_stream();
    let mut end = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        end.extend_from_slice(&piece[piece.len().saturating_sub(RETAINED)..]);
        end.drain(..end.len().saturating_sub(RETAINED));
    }
    Ok(end)
}

/// Finds the number of the newest probe at the end of a request.
fn probe_of(body: &[u8]) -> Option<u64> {
    let at = body.windows(PROBE.len()).rposition(|window| window == PROBE)?;
    let digits = body[at + PROBE.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let digits: Vec<u8> = digits.copied().collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

impl Frames {
    fn new(tokens: usize, token_text: &str) -> Self {
        let usage = json!({"prompt_tokens": 32, "completion_tokens": tokens, "total_tokens": 32 + tokens});
        let head = chunk(&json!({"role": "assistant", "content": ""}), &Value::Null);
        let token = chunk(&json!({"content": token_text}), &Value::Null);
        let mut tail = chunk(&json!({}), &json!("stop"));
        tail += &frame(&json!({
            "id": "chatcmpl-load", "object": "chat.completion.chunk", "created": 0, "model": "fast",
            "choices": [], "usage": usage,
        }));
        tail += "data: [DONE]\n\n";
        let plain = json!({
            "id": "chatcmpl-load", "object": "chat.completion", "created": 0, "model": "fast",
            "choices": [{
                "index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": token_text.repeat(tokens)},
            }],
            "usage": usage,
        });
        Self {
            whole: format!("{head}{}{tail}", token.repeat(tokens)).into(),
            head: head.into(),
            token: token.into(),
            tail: tail.into(),
            plain: plain.to_string().into(),
        }
    }
}

/// A completion of calls alone.
fn calls(tool: &str, arguments: &Value, number: usize) -> Bytes {
    let call = |index: usize| {
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        json!({"index": index, "id": format!("call-{index}"), "type": "function", "function": function})
    };
    let calls: Vec<Value> = (0..number).map(call).collect();
    let delta = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let (all, tail) = (chunk(&delta, &Value::Null), chunk(&json!({}), &json!("tool_calls")));
    format!("{all}{tail}data: [DONE]\n\n").into()
}

/// A completion of random words, each a token.
fn wordy() -> String {
    let text = words(WORDY_BYTES);
    let tokens = text
        .split_inclusive(' ')
        .map(|word| chunk(&json!({"content": word}), &Value::Null));
    let tail = chunk(&json!({}), &json!("stop"));
    format!("{}{tail}data: [DONE]\n\n", tokens.collect::<String>())
}

/// Counts the results of tools in a request.
fn results_in(body: &[u8]) -> usize {
    body.windows(RESULT.len()).filter(|window| *window == RESULT).count()
}

fn chunk(delta: &Value, finish: &Value) -> String {
    frame(&json!({
        "id": "chatcmpl-load", "object": "chat.completion.chunk", "created": 0, "model": "fast",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }))
}

fn frame(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
