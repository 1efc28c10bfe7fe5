//! One tenant does its worst, in each of several ways, while another makes light requests: how much
//! later those get their responses, and what the worst costs in memory. Both have the limits of an
//! operator who gives each tenant a part of what the service carries.

mod busy_cores;
mod receivers;
mod slow_reader;
mod ways;
mod yielding;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::busy_cores::{BusyCores, Priority};
use self::receivers::ContentReceiver;
use self::ways::{Attacker, Done};
use crate::bench::Bench;
use crate::client::{Ask, Client};
use crate::mock::{FAST, MockModel};
use crate::report::{Report, megabytes, milliseconds, progress};
use crate::sample::Sample;
use crate::service::{Launcher, provider_settings};

/// The limits of each tenant, and of a session. Sessions may be larger than by default, so that the
/// worst one is worse.
const SETTINGS: [(&str, &str); 10] = [
    ("AGENT_RUNTIME__LIMITS__EACH_TENANT__REQUESTS_PER_SECOND", "200"),
    ("AGENT_RUNTIME__LIMITS__EACH_TENANT__LIGHT_RUNS", "4"),
    ("AGENT_RUNTIME__LIMITS__EACH_TENANT__QUEUED_RUNS", "200"),
    ("AGENT_RUNTIME__LIMITS__EACH_TENANT__READERS", "100"),
    ("AGENT_RUNTIME__RUNS__SUBAGENT_CONCURRENCY", "4"),
    ("AGENT_RUNTIME__RUNS__MAX_CONCURRENT_SUBAGENTS", "16"),
    ("AGENT_RUNTIME__STORE__MAX_SESSION_BYTES", "268435456"),
    ("AGENT_RUNTIME__WEBHOOKS__ALLOW_HTTP", "true"),
    ("AGENT_RUNTIME__WEBHOOKS__ALLOW_PRIVATE_ADDRESSES", "true"),
    ("AGENT_RUNTIME__LOG__FILTER", "error"),
];
/// Callers of the tenant that is measured, each with one request at a time.
const CALLERS: usize = 2;
/// The provider of its runs. The other tenant has all that other parts of the load use.
const PROVIDER: &str = "light";
/// The pause between two requests of one of them.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the worst tenant works before the measurement.
const WARM_UP: Duration = Duration::from_secs(2);

/// A kind of light request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Light {
    /// A run of one completion, and reading it.
    Runs,
    /// A run by the queue, up to its end.
    Queued,
    /// A run by the queue, up to the webhook about its end.
    Told,
}

/// The tenant that is measured.
#[derive(Debug, Clone)]
struct Caller {
    client: Client,
    receiver: ContentReceiver,
}

/// Measures a tenant's light requests alone, and beside each way.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let (url, launcher) = (bench.database.url(), bench.launcher);
    let window = bench.options.window() / 2;
    let light = launcher.make_key(&url, "light").await?;
    let worst = launcher.make_key(&url, "worst").await?;
    let crowd = yielding::runtime()?;
    let service = launcher.start_with(&url, &settings(bench.mock, &crowd).await?).await?;
    let light = Caller {
        client: service.client.with_key(&light),
        receiver: ContentReceiver::start().await?,
    };
    light.client.put_templated_agent().await?;
    let attacker = service.client.apart()?.with_key(&worst);
    let attacker = Attacker::prepare(attacker, bench.options.large_messages).await?;
    let undisturbed = measure_alone(&light, window, report).await?;
    let wanted = ways::all()
        .into_iter()
        .filter(|way| way.name.contains(&bench.options.way));
    for way in wanted {
        let stop = CancellationToken::new();
        let worst = attacker.begin(way, &stop, &crowd);
        tokio::time::sleep(WARM_UP).await;
        let sample = requests(&light, way.against, window).await;
        stop.cancel();
        let done = worst.join_all().await;
        let sample = sample?;
        let (requests, successes) = done.iter().fold((0, 0), |(requests, successes), done: &Done| {
            (requests + done.requests, successes + done.successes)
        });
        ensure!(requests > 0, "nothing was done of: {}", way.name);
        let ratio = sample.percentile(99).as_secs_f64() / undisturbed[&way.against].as_secs_f64();
        let name = format!("{} while another tenant {}", way.against.name(), way.name);
        let note = format!(
            "{}; the other one: {requests} requests, {successes} succeeded",
            words(&sample)
        );
        report
            .add(format!("{name}: p99 over that alone"), ratio, "times")
            .note(note);
        progress(&format!("memory by now: {:.1} MB", megabytes(service.memory()?.peak)));
    }
    for kind in Light::ALL {
        let sample = requests(&light, kind, window).await?;
        add_alone(&format!("{}, alone again", kind.name()), &sample, report);
    }
    service.stop().await?;
    memory(launcher, &url, attacker, report).await
}

/// Measures the light tenant alone: on idle cores, and on busy cores. Returns the p99
/// on idle cores.
///
/// Threads that yield to all others delay none of them. So what the light tenant loses
/// beside them is what a busy machine costs: its caches, and the host that it shares.
async fn measure_alone(light: &Caller, window: Duration, report: &mut Report<'_>) -> Result<HashMap<Light, Duration>> {
    let circumstances = [
        ("", None),
        (
            ", while a thread that yields to all else computes on each core",
            Some(Priority::Yielding),
        ),
        (", while a thread computes on each core", Some(Priority::Equal)),
    ];
    let mut undisturbed = HashMap::new();
    for (words_after, priority) in circumstances {
        for kind in Light::ALL {
            let _busy = priority.map(BusyCores::start);
            let sample = requests(light, kind, window).await?;
            add_alone(&format!("{}, alone{words_after}", kind.name()), &sample, report);
            if priority.is_none() {
                undisturbed.insert(kind, sample.percentile(99));
            }
        }
    }
    Ok(undisturbed)
}

fn add_alone(name: &str, sample: &Sample, report: &mut Report<'_>) {
    let late = milliseconds(sample.percentile(99));
    report.add(format!("{name}: p99"), late, "ms").note(words(sample));
}

/// Returns the settings of the service, with a model server for each tenant.
async fn settings(mock: &MockModel, crowd: &Handle) -> Result<Vec<(String, String)>> {
    let of_light = mock.clone();
    let of_worst = crowd.spawn(async move { of_light.another().await }).await??;
    Ok(SETTINGS
        .iter()
        .map(|(key, value)| (String::from(*key), String::from(*value)))
        .chain(
            of_worst
                .providers()
                .flat_map(|(name, base_url)| provider_settings(name, base_url)),
        )
        .chain(provider_settings(PROVIDER, mock.base_url(FAST)))
        .collect())
}

/// Measures what one reader of the large session costs, and many slow ones, each time in a fresh
/// process.
async fn memory(launcher: &Launcher, url: &str, attacker: Attacker, report: &mut Report<'_>) -> Result<()> {
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
        report.add(
            format!("{readers} slow readers of a large session: memory"),
            megabytes(cost),
            "MB",
        );
        service.stop().await?;
    }
    Ok(())
}

/// Makes light requests for a while, each caller one after another. The pauses between do not
/// count.
async fn requests(light: &Caller, kind: Light, window: Duration) -> Result<Sample> {
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let light = light.clone();
        callers.spawn(async move {
            let mut times = Vec::new();
            while began.elapsed() < window {
                times.extend(kind.request(&light).await?);
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
    const ALL: [Self; 3] = [Self::Runs, Self::Queued, Self::Told];

    fn name(self) -> &'static str {
        match self {
            Self::Runs => "light runs and reads",
            Self::Queued => "queued runs",
            Self::Told => "webhooks after queued runs",
        }
    }

    /// Makes one request or two, and returns how long each took.
    async fn request(self, Caller { client, receiver }: &Caller) -> Result<Vec<Duration>> {
        let ask = Ask::of(PROVIDER);
        let began = Instant::now();
        match self {
            Self::Runs => {
                let run = client.run(ask).await?;
                let ran = began.elapsed();
                let began = Instant::now();
                client.first_message(run.session_id).await?;
                Ok(vec![ran, began.elapsed()])
            }
            Self::Queued => {
                let run_id = client.enqueue(ask).await?;
                client.ended(run_id).await?;
                Ok(vec![began.elapsed()])
            }
            Self::Told => {
                let (url, arrival) = receiver.expect();
                let mut body = ask.body("async");
                body["webhook"] = json!({"url": url});
                client.call(Method::POST, "/v1/runs", Some(&body)).await?;
                arrival.await?;
                Ok(vec![began.elapsed()])
            }
        }
    }
}

fn words(sample: &Sample) -> String {
    let (middle, late) = (milliseconds(sample.median()), milliseconds(sample.percentile(99)));
    format!("p50 {middle:.2} ms, p99 {late:.2} ms of {}", sample.count())
}
