//! One tenant does its worst, in each of several ways, while another makes light requests: how much later those are answered, and
//! what the worst costs in memory. Both have the limits of an operator who gives each tenant a part of what the service carries.

mod slow_reader;
mod ways;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::ways::{Attacker, Done};
use crate::client::{Ask, Client};
use crate::mock::FAST;
use crate::report::{Report, megabytes, milliseconds, progress};
use crate::sample::Sample;
use crate::service::Launcher;

/// What each tenant may do, and how large a session may get here: larger than by default, so that the worst one is worse.
const SETTINGS: [(&str, &str); 6] = [
    ("AGENT_RUNTIME__LIMITS__EACH_TENANT__REQUESTS_PER_SECOND", "200"),
    ("AGENT_RUNTIME__LIMITS__EACH_TENANT__LIGHT_RUNS", "16"),
    ("AGENT_RUNTIME__LIMITS__EACH_TENANT__QUEUED_RUNS", "200"),
    ("AGENT_RUNTIME__LIMITS__EACH_TENANT__READERS", "100"),
    ("AGENT_RUNTIME__STORE__MAX_SESSION_BYTES", "268435456"),
    ("AGENT_RUNTIME__LOG__FILTER", "error"),
];
/// Callers of the tenant that is measured, each with one request at a time.
const CALLERS: usize = 2;
/// The pause between two requests of one of them.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the worst goes on before it is measured.
const WARM_UP: Duration = Duration::from_secs(2);

/// What the light requests are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Light {
    /// A run of one answer, and reading it.
    Runs,
    /// A run by the queue, up to its end.
    Queued,
}

/// Measures a tenant's light requests alone, and beside each way.
pub(crate) async fn measure(
    launcher: &Launcher,
    url: &str,
    (messages, window): (usize, Duration),
    report: &mut Report,
) -> Result<()> {
    let light = launcher.make_key(url, "light").await?;
    let worst = launcher.make_key(url, "worst").await?;
    let service = launcher.start_with(url, &SETTINGS).await?;
    let light = service.client.with_key(&light);
    light.put_templated_agent().await?;
    let attacker = Attacker::prepare(service.client.with_key(&worst), messages).await?;
    let mut alone = Vec::new();
    for kind in [Light::Runs, Light::Queued] {
        let sample = requests(&light, kind, window).await?;
        report.add(format!("light tenant, {}: alone", kind.name()), words(&sample));
        alone.push(sample.percentile(99));
    }
    for way in ways::all() {
        let kind = if way.is_of_queue { Light::Queued } else { Light::Runs };
        let before = alone[usize::from(way.is_of_queue)];
        let stop = CancellationToken::new();
        let worst = attacker.begin(way, &stop);
        tokio::time::sleep(WARM_UP).await;
        let sample = requests(&light, kind, window).await;
        stop.cancel();
        let done = worst.join_all().await;
        let sample = sample?;
        let (requests, successes) = done.iter().fold((0, 0), |(requests, successes), done: &Done| {
            (requests + done.requests, successes + done.successes)
        });
        ensure!(requests > 0, "nothing was done of: {}", way.name);
        let p99 = sample.percentile(99);
        report.aim(
            format!("light tenant, {}: while another one {}", kind.name(), way.name),
            format!(
                "{} ({requests} requests of the other one, {successes} succeeded)",
                words(&sample)
            ),
            "p99 at most twice that alone",
            p99 <= 2 * before,
        );
        progress(&format!("memory by now: {}", megabytes(service.memory()?.peak)));
    }
    for kind in [Light::Runs, Light::Queued] {
        let sample = requests(&light, kind, window).await?;
        report.add(format!("light tenant, {}: alone again", kind.name()), words(&sample));
    }
    service.stop().await?;
    memory(launcher, url, attacker, report).await
}

/// Measures what one reader of the large session costs, and many slow ones, each time in a fresh process.
async fn memory(launcher: &Launcher, url: &str, attacker: Attacker, report: &mut Report) -> Result<()> {
    for readers in [1, 10, 100] {
        let service = launcher.start_with(url, &SETTINGS).await?;
        let at_rest = service.memory()?.peak;
        let attacker = attacker.at(&service.client);
        let stop = CancellationToken::new();
        let mut reading = JoinSet::new();
        for _ in 0..readers {
            let (attacker, stop) = (attacker.clone(), stop.clone());
            reading.spawn(async move { attacker.read_slowly(&stop).await });
        }
        tokio::time::sleep(5 * WARM_UP).await;
        stop.cancel();
        reading.join_all().await;
        let cost = service.memory()?.peak.saturating_sub(at_rest);
        report.aim(
            format!(
                "{readers} slow readers of a session of {} messages of 9 MB: memory",
                attacker.messages()
            ),
            megabytes(cost),
            "half of http.max_bytes_in_flight and 64 MB",
            cost <= (128 + 64) << 20,
        );
        service.stop().await?;
    }
    Ok(())
}

/// Makes light requests for a while, each caller one after another. The pauses between do not count.
async fn requests(client: &Client, kind: Light, window: Duration) -> Result<Sample> {
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let client = client.clone();
        callers.spawn(async move {
            let mut times = Vec::new();
            while began.elapsed() < window {
                times.extend(kind.request(&client).await?);
                tokio::time::sleep(PAUSE).await;
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(ended) = callers.join_next().await {
        times.append(&mut ended??);
    }
    Ok(Sample::new(began.elapsed(), times))
}

impl Light {
    fn name(self) -> &'static str {
        match self {
            Self::Runs => "light runs and reads",
            Self::Queued => "queued runs",
        }
    }

    /// Makes one request or two, and returns how long each took.
    async fn request(self, client: &Client) -> Result<Vec<Duration>> {
        let ask = Ask {
            base: None,
            input: "What is the weather like?",
            provider: FAST,
        };
        let began = Instant::now();
        if self == Self::Queued {
            let run_id = client.enqueue(ask).await?;
            client.ended(run_id).await?;
            return Ok(vec![began.elapsed()]);
        }
        let run = client.run(ask).await?;
        let ran = began.elapsed();
        let began = Instant::now();
        client.first_message(run.session_id).await?;
        Ok(vec![ran, began.elapsed()])
    }
}

fn words(sample: &Sample) -> String {
    format!(
        "p50 {}, p99 {} of {}",
        milliseconds(sample.median()),
        milliseconds(sample.percentile(99)),
        sample.count()
    )
}
