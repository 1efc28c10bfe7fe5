//! The story of one request as its caller lives it: ask until accepted, follow to the end, request
//! how it shall end, and note all of it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::{Ask, Client};
use crate::facts::{Facts, RunIds};
use crate::random::Random;
use crate::request::{Kind, Request};
use crate::stream::Reading;

/// The message of a caller to a run in progress.
pub(crate) const STEERING: &str = "finish now";
/// A control comes at some time in the run's life, or before it begins.
const LATEST_CONTROL: Duration = Duration::from_millis(1500);
/// Of so many of a hundred readers each leaves now and then.
const RESTLESS: u64 = 40;

/// Lives the story of a request, and then that of its answers if its run waits for them.
pub(crate) async fn call(client: Client, request: Request, seed: u64) -> Vec<Facts> {
    let mut random = Random::new(seed, 1_000 + request.number);
    let mut first = story(&client, &mut random, Asking::run(request)).await;
    let (Kind::Approves, Some(run)) = (first.request.kind, first.run) else {
        return vec![first];
    };
    match Asking::answers(&client, &mut random, &first.request, run).await {
        Ok(answers) => {
            let second = story(&client, &mut random, answers).await;
            vec![first, second]
        }
        Err(error) => {
            first.faults.push(format!("{error:#}"));
            vec![first]
        }
    }
}

async fn story(client: &Client, random: &mut Random, asking: Asking) -> Facts {
    let mut facts = Facts::new(asking.request.clone());
    if let Err(error) = live(client, random, &asking, &mut facts).await {
        facts.faults.push(format!("{error:#}"));
    }
    facts
}

/// A request as it is sent.
struct Asking {
    request: Request,
    path: String,
    body: Value,
}

impl Asking {
    fn run(request: Request) -> Self {
        Self {
            path: "/v1/runs".to_owned(),
            body: request.body(),
            request,
        }
    }

    /// Answers all open calls of a run.
    async fn answers(client: &Client, random: &mut Random, request: &Request, run: RunIds) -> Result<Self> {
        let path = format!("/v1/runs/{}", run.run_id);
        let waiting = client.get(random, &path).await?;
        let mut answers = waiting["required_action"]["answers"].clone();
        let stubs = answers.as_array_mut().context("a run that waits for no answers")?;
        anyhow::ensure!(stubs.len() == 4, "{} calls are open", stubs.len());
        for stub in stubs {
            if stub.get("result").is_some() {
                stub["result"] = json!("decided");
            } else {
                stub["decision"] = json!("approve");
            }
        }
        let request = request.conclusion();
        let mut body = request.body();
        body["answers"] = answers;
        Ok(Self {
            request,
            path: format!("{path}/answers"),
            body,
        })
    }
}

async fn live(client: &Client, random: &mut Random, asking: &Asking, facts: &mut Facts) -> Result<()> {
    let begun = Instant::now();
    let run = accept(client, random, asking).await?;
    facts.run = Some(run);
    if facts.request.is_repeated {
        let again = accept(client, random, asking).await?;
        if again != run {
            facts.faults.push(format!("the repeated request gave {}", again.run_id));
        }
    }
    let mut reading = Reading::default();
    let is_restless = random.chance(RESTLESS);
    let mut elsewhere = random.clone();
    let (read, control) = tokio::join!(
        reading.read_to_the_end(client, random, run.run_id, is_restless),
        control(client, &mut elsewhere, run.run_id, &facts.request),
    );
    facts.took = begun.elapsed();
    facts.events = reading.events;
    facts.reconnects = reading.reconnects;
    facts.sent_back = reading.sent_back;
    facts.emitted = reading.emitted;
    facts.faults.append(&mut reading.faults);
    read.context("following the run")?;
    facts.control = control.context("controlling the run")?;
    Ok(())
}

/// Asks for the run until it is accepted. The key makes it one run however often the question is
/// put.
async fn accept(client: &Client, random: &mut Random, asking: &Asking) -> Result<RunIds> {
    let key = asking.request.key();
    let ask = Ask {
        method: Method::POST,
        path: &asking.path,
        body: Some(&asking.body),
        key: Some(&key),
    };
    let answer = client.answer(random, ask).await.context("asking for the run")?;
    anyhow::ensure!(
        matches!(answer.status, StatusCode::OK | StatusCode::ACCEPTED),
        "the request was refused: {} {}",
        answer.status,
        answer.body
    );
    serde_json::from_value(answer.body).context("an answer without ids")
}

/// Sends the request that ends the run, if its caller wants that, and returns the response.
async fn control(client: &Client, random: &mut Random, run_id: Uuid, request: &Request) -> Result<Option<String>> {
    let (action, body) = match request.kind {
        Kind::IsStopped => ("stop", None),
        Kind::IsCancelled => ("cancel", None),
        Kind::IsSteered => ("steer", Some(json!({"id": "steering", "input": STEERING}))),
        _ => return Ok(None),
    };
    tokio::time::sleep(random.between(Duration::ZERO, LATEST_CONTROL)).await;
    let path = format!("/v1/runs/{run_id}/{action}");
    // Twice, as a caller without a response would: the second one must have no further effect.
    let first = client.answer(random, Ask::post(&path, body.as_ref())).await?;
    let second = client.answer(random, Ask::post(&path, body.as_ref())).await?;
    for answer in [&first, &second] {
        anyhow::ensure!(
            answer.status.is_success() || answer.status == StatusCode::CONFLICT,
            "{action} was refused: {} {}",
            answer.status,
            answer.body
        );
    }
    Ok(Some(format!("{action}: {} {}", word(&first.body), word(&second.body))))
}

/// Returns the outcome of a response in one word.
fn word(body: &Value) -> &str {
    body["status"].as_str().or(body["code"].as_str()).unwrap_or("?")
}
