//! Many slow streams at once: the memory of the service, and how soon each caller has its first
//! token.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::task::JoinSet;

use crate::bench::Bench;
use crate::client::{Ask, Client};
use crate::mock::{HELD, MockModel};
use crate::report::{Report, megabytes, milliseconds};
use crate::sample::{Sample, count};

const OPEN_LIMIT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(20);

/// Measures a fresh service, and the mock model without it. Each has the streams twice, since the
/// first ones open the connections.
pub(crate) async fn measure(bench: &Bench<'_>, report: &mut Report<'_>) -> Result<()> {
    let streams = bench.options.streams;
    let name = format!("{streams} slow streams");
    let service = bench.start().await?;
    service.client.put_agent(&[]).await?;
    for measured in [false, true] {
        let client = service.client.clone();
        let cpu = service.cpu_time()?;
        let (mut crowd, delays) = Crowd::open(bench.mock, streams, move || through(client.clone())).await?;
        let (cpu, resident) = (service.cpu_time()?.saturating_sub(cpu), service.memory()?.resident);
        crowd.close(bench.mock).await?;
        if measured {
            report.add(format!("{name}: first token, p50"), milliseconds(delays.median()), "ms");
            report.add(
                format!("{name}: first token, p99"),
                milliseconds(delays.percentile(99)),
                "ms",
            );
            let cpu = milliseconds(cpu) / count(streams);
            report.add(format!("{name}: first token, CPU of the service"), cpu, "ms");
            report.add(format!("{name}: memory while all are open"), megabytes(resident), "MB");
        }
    }
    report.add(format!("{name}: peak memory"), megabytes(service.memory()?.peak), "MB");
    service.stop().await?;
    for measured in [false, true] {
        let (http, url) = (bench.http.clone(), bench.mock.base_url(HELD));
        let (mut crowd, delays) = Crowd::open(bench.mock, streams, move || directly(http.clone(), url.clone())).await?;
        crowd.close(bench.mock).await?;
        if measured {
            let late = milliseconds(delays.percentile(99));
            report.add(format!("{name}: first token of the mock model itself, p99"), late, "ms");
        }
    }
    Ok(())
}

/// Streams that are open: the model stops after its first token until the gate opens.
struct Crowd(JoinSet<Result<()>>);

impl Crowd {
    /// Opens all streams at once, and waits until each has its first token. Returns how long each
    /// waited for it.
    async fn open<F>(mock: &MockModel, streams: usize, open: impl Fn() -> F) -> Result<(Self, Sample)>
    where
        F: Future<Output = Result<BoxedEnd>> + Send + 'static,
    {
        mock.set_gate(false);
        let first_tokens = Arc::new(AtomicUsize::new(0));
        let times = Arc::new(parking_lot::Mutex::new(Vec::with_capacity(streams)));
        let began = Instant::now();
        let mut runs = JoinSet::new();
        for _ in 0..streams {
            let (opening, open, times) = (open(), Arc::clone(&first_tokens), Arc::clone(&times));
            runs.spawn(async move {
                let start = Instant::now();
                let end = opening.await?;
                times.lock().push(start.elapsed());
                open.fetch_add(1, Ordering::Relaxed);
                end.await
            });
        }
        while first_tokens.load(Ordering::Relaxed) < streams {
            // A stream that ends before the gate opens has failed.
            if let Some(ended) = runs.try_join_next() {
                ended??;
            }
            let number = first_tokens.load(Ordering::Relaxed);
            ensure!(
                began.elapsed() < OPEN_LIMIT,
                "{number} of {streams} streams were open after {OPEN_LIMIT:?}"
            );
            tokio::time::sleep(POLL).await;
        }
        let times = std::mem::take(&mut *times.lock());
        Ok((Self(runs), Sample::new(began.elapsed(), times)))
    }

    /// Lets all streams go on to their ends.
    async fn close(&mut self, mock: &MockModel) -> Result<()> {
        mock.set_gate(true);
        while let Some(ended) = self.0.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// The rest of a stream after its first token.
type BoxedEnd = futures_util::future::BoxFuture<'static, Result<()>>;

async fn through(client: Client) -> Result<BoxedEnd> {
    let mut events = client.stream(Ask::of(HELD)).await?;
    events.until("message.delta").await?;
    Ok(Box::pin(async move { events.until("run.completed").await }))
}

async fn directly(http: reqwest::Client, base_url: String) -> Result<BoxedEnd> {
    let request = http.post(format!("{base_url}/chat/completions"));
    let body = r#"{"model":"fast","messages":[{"role":"user","content":"x"}],"stream":true}"#;
    let mut response = request.body(body).send().await?.error_for_status()?;
    let mut read = Vec::new();
    while !read.windows(TOKEN.len()).any(|window| window == TOKEN) {
        let chunk = response.chunk().await?;
        read.extend_from_slice(&chunk.context("the stream ended before its first token")?);
    }
    Ok(Box::pin(async move {
        while response.chunk().await?.is_some() {}
        Ok(())
    }))
}

/// A text that tokens have, and the head of a stream has not.
const TOKEN: &[u8] = b"sunny";
