//! Runs per second, their times and the processor time they cost the service.

use std::time::Duration;

use anyhow::Result;
use uuid::Uuid;

use crate::Options;
use crate::client::Ask;
use crate::mock::{FAST, MockModel};
use crate::report::{Report, milliseconds};
use crate::sample::{Sample, count, repeat};
use crate::service::Launcher;

const WARM_UP: Duration = Duration::from_secs(2);
/// A conversation of this length is left for a new one, so that the figure is that of common
/// conversations.
const TURNS: usize = 20;
const INPUT: &str = "What is the weather like?";
const CPU_AIM: Duration = Duration::from_micros(100);

/// What was measured of the service.
#[derive(Debug)]
pub(crate) struct Runs {
    /// Runs without a base.
    new: Sample,
    /// Runs that continue a conversation.
    continuing: Sample,
    /// The service's processor time per run without a base.
    cpu_new: Duration,
    /// The service's processor time per run that continues a conversation.
    cpu_continuing: Duration,
    /// A session that was published.
    pub(crate) last_session: Uuid,
}

/// Measures the throughput of the mock model without the service.
pub(crate) async fn model_limit(mock: &MockModel, http: &reqwest::Client, options: &Options) -> Result<Sample> {
    let url = format!("{}/chat/completions", mock.base_url(FAST));
    let http = http.clone();
    repeat(options.clients, options.window() / 2, move |()| {
        let request = http
            .post(&url)
            .body(r#"{"model":"fast","messages":[{"role":"user","content":"x"}],"stream":true}"#);
        async move {
            request.send().await?.error_for_status()?.bytes().await?;
            Ok(())
        }
    })
    .await
}

/// Measures new and continuing runs.
pub(crate) async fn measure(launcher: &Launcher, url: &str, options: &Options) -> Result<Runs> {
    let service = launcher.start(url).await?;
    service.client.put_agent().await?;
    let client = service.client.clone();
    let new = move |()| {
        let client = client.clone();
        async move {
            client
                .run(Ask {
                    base: None,
                    input: INPUT,
                    provider: FAST,
                })
                .await?;
            Ok(())
        }
    };
    let client = service.client.clone();
    let continuing = move |(base, turns): (Option<Uuid>, usize)| {
        let client = client.clone();
        async move {
            let answer = client
                .run(Ask {
                    base,
                    input: INPUT,
                    provider: FAST,
                })
                .await?;
            Ok(if turns + 1 < TURNS {
                (Some(answer.session_id), turns + 1)
            } else {
                (None, 0)
            })
        }
    };
    repeat(options.clients, WARM_UP, new.clone()).await?;
    let start = service.cpu_time()?;
    let new = repeat(options.clients, options.window(), new).await?;
    let middle = service.cpu_time()?;
    repeat(options.clients, WARM_UP, continuing.clone()).await?;
    let resumed = service.cpu_time()?;
    let continuing = repeat(options.clients, options.window(), continuing).await?;
    let end = service.cpu_time()?;
    let last = service
        .client
        .run(Ask {
            base: None,
            input: INPUT,
            provider: FAST,
        })
        .await?;
    service.stop().await?;
    Ok(Runs {
        cpu_new: middle.saturating_sub(start).div_f64(count(new.count().max(1))),
        cpu_continuing: end.saturating_sub(resumed).div_f64(count(continuing.count().max(1))),
        new,
        continuing,
        last_session: last.session_id,
    })
}

/// Adds the figures; the machine's limit was measured before and after the runs.
pub(crate) fn report(runs: &Runs, model: &Sample, limits: &[Sample; 2], driver: Option<Duration>, report: &mut Report) {
    let [before, after] = limits.each_ref().map(Sample::per_second);
    let limit = f64::midpoint(before, after);
    report.add(
        "limit: commits of one 4 KB row",
        format!("{limit:.0}/s ({before:.0} before, {after:.0} after)"),
    );
    report.add(
        "limit: mock model, asked directly",
        format!("{:.0}/s", model.per_second()),
    );
    for (name, sample) in [("new sessions", &runs.new), ("continuing", &runs.continuing)] {
        let measured = format!(
            "{:.0} runs/s, p50 {}, p99 {}",
            sample.per_second(),
            milliseconds(sample.percentile(50)),
            milliseconds(sample.percentile(99))
        );
        report.add(format!("runs, {name}"), measured);
        let ratio = sample.per_second() / limit;
        let (figure, measured) = (
            format!("runs, {name}, of the commit limit"),
            format!("{:.0} %", ratio * 100.0),
        );
        match driver {
            Some(_) => report.aim(figure, measured, ">= 50 %", ratio >= 0.5),
            None => report.add(figure, measured),
        }
    }
    for (name, cpu) in [("new sessions", runs.cpu_new), ("continuing", runs.cpu_continuing)] {
        report.add(format!("service processor time per run, {name}"), milliseconds(cpu));
        if let Some(driver) = driver {
            let beyond = cpu.saturating_sub(driver);
            let figure = format!("service processor time per run beyond the driver's, {name}");
            report.aim(figure, milliseconds(beyond), "<= 0.1 ms", beyond <= CPU_AIM);
        }
    }
    if let Some(driver) = driver {
        report.add("driver's processor time per like statement", milliseconds(driver));
    }
}
