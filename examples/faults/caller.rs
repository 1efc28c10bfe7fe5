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

/// Lives the story.
pub(crate) async fn call(client: Client, request: Request, seed: u64) -> Facts {
    let mut random = Random::new(seed, 1_000 + request.number);
    let mut facts = Facts::new(request);
    if let Err(error) = live(&client, &mut random, &mut facts).await {
        facts.faults.push(format!("{error:#}"));
    }
    facts
}

async fn live(client: &Client, random: &mut Random, facts: &mut Facts) -> Result<()> {
    let begun = Instant::now();
    let run = accept(client, random, &facts.request).await?;
    facts.run = Some(run);
    if facts.request.is_repeated {
        let again = accept(client, random, &facts.request).await?;
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
    facts.faults.append(&mut reading.faults);
    read.context("following the run")?;
    facts.control = control.context("controlling the run")?;
    Ok(())
}

/// Asks for the run until it is accepted. The key makes it one run however often the question is
/// put.
async fn accept(client: &Client, random: &mut Random, request: &Request) -> Result<RunIds> {
    let (body, key) = (request.body(), request.key());
    let ask = Ask {
        method: Method::POST,
        path: "/v1/runs",
        body: Some(&body),
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
        Kind::Works | Kind::Repeats | Kind::Answers | Kind::Waits => return Ok(None),
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
