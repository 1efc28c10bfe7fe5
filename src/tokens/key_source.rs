//! The keys of an issuer: read in the background, and sooner for a token with an unknown `kid`.
//!
//! Only the loop reads keys, so a request that is cancelled stops no read, and there is one read at
//! a time. A failed read and an unknown `kid` never remove keys. A successful read replaces all of
//! them, so that a key that the issuer has withdrawn is no longer accepted.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::algorithm::Algorithm;
use super::fault::TokenFault;
use super::fetch::{Fetch, FetchError, is_secure};
use super::key_set::KeySet;
use super::public_key::PublicKey;
use super::settings::IssuerSettings;
use values::clock::Clock;

/// How often the keys are read.
const REFRESH: Duration = Duration::from_mins(10);
/// How soon a failed read is repeated.
const RETRY: Duration = Duration::from_secs(30);
/// How soon it is repeated while there are no keys.
const FIRST_RETRY: Duration = Duration::from_secs(5);
/// How often tokens with unknown keys cause a read.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(30);
/// How long keys are used that can't be read again.
const MAX_AGE: Duration = Duration::from_hours(24);
/// How long a request waits for a read.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the loop checks whether a read is due. The clock may jump, for example when a machine
/// resumes.
const POLL: Duration = Duration::from_secs(1);

/// The keys of an issuer.
#[derive(Debug)]
pub(super) struct KeySource {
    /// The name of the issuer in the configuration.
    name: String,
    issuer: String,
    /// `None` reads the address from the discovery document.
    uri: Option<String>,
    algorithms: Vec<Algorithm>,
    fetch: Arc<dyn Fetch>,
    state: Mutex<State>,
    /// Wakes the loop.
    wake_up: Notify,
    /// The number of the last read that has ended.
    ended: watch::Sender<u64>,
}

/// All times are those of the monotonic clock.
#[derive(Debug, Default)]
struct State {
    keys: Option<(Arc<KeySet>, Duration)>,
    /// When the loop began.
    began: Option<Duration>,
    next_read: Duration,
    /// The number of the last read that has begun.
    last_read: u64,
    /// The number of the read that a token with an unknown key waits for.
    wanted_read: u64,
    last_wanted: Option<Duration>,
}

/// What is read of a discovery document.
#[derive(Debug, Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl KeySource {
    pub(super) fn new(name: &str, settings: &IssuerSettings, fetch: Arc<dyn Fetch>) -> Self {
        Self {
            name: name.to_owned(),
            issuer: settings.issuer.clone(),
            uri: settings.jwks_uri.clone(),
            algorithms: settings.algorithms.clone(),
            fetch,
            state: Mutex::default(),
            wake_up: Notify::new(),
            ended: watch::Sender::new(0),
        }
    }

    /// Returns the name of the issuer in the configuration.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Finds a key. For an unknown one, waits for one read of the keys, at most every 30 seconds.
    pub(super) async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        clock: &dyn Clock,
    ) -> Result<Arc<PublicKey>, TokenFault> {
        let mut ended = self.ended.subscribe();
        let known = self.known(id, algorithm, clock.elapsed());
        if known.is_ok() {
            return known;
        }
        let Some(wanted) = self.want(clock.elapsed()) else {
            return known;
        };
        // A read ends in time, unless the loop does not run.
        let _ = timeout(PATIENCE, ended.wait_for(|number| *number >= wanted)).await;
        self.known(id, algorithm, clock.elapsed())
    }

    /// Returns how old the keys are: how long ago they were read or, if they never were, how long
    /// the process has tried to.
    pub(super) fn age(&self, now: Duration) -> Duration {
        let state = self.state.lock();
        let read_at = state.keys.as_ref().map(|(_, read_at)| *read_at).or(state.began);
        read_at.map_or(Duration::ZERO, |read_at| now.saturating_sub(read_at))
    }

    /// Reads the keys whenever that is due. Never returns.
    pub(super) async fn refresh(&self, clock: &dyn Clock) {
        loop {
            if self.is_due(clock.elapsed()) {
                self.read(clock).await;
            }
            tokio::select! {
                () = self.wake_up.notified() => (),
                () = sleep(POLL) => (),
            }
        }
    }

    fn known(&self, id: Option<&str>, algorithm: Algorithm, now: Duration) -> Result<Arc<PublicKey>, TokenFault> {
        let state = self.state.lock();
        let keys = state.keys.as_ref();
        let (keys, _) = keys
            .filter(|(_, read_at)| now.saturating_sub(*read_at) < MAX_AGE)
            .ok_or(TokenFault::KeysUnavailable)?;
        keys.find(id, algorithm).cloned().ok_or(TokenFault::UnknownKey)
    }

    /// Returns the number of the read to wait for; `None` if the last one for an unknown key was a
    /// short time ago.
    fn want(&self, now: Duration) -> Option<u64> {
        let mut state = self.state.lock();
        let ended = *self.ended.borrow();
        // The loop begins with a read.
        let first = state.last_read.max(1);
        if state.keys.is_none() && first > ended {
            return Some(first);
        }
        if state.wanted_read <= ended {
            let is_too_soon = |last: Duration| now.saturating_sub(last) < UNKNOWN_PAUSE;
            if state.last_wanted.is_some_and(is_too_soon) {
                return None;
            }
            state.last_wanted = Some(now);
            // A read in progress may have begun before the key was there.
            state.wanted_read = state.last_read + 1;
            self.wake_up.notify_one();
        }
        Some(state.wanted_read)
    }

    fn is_due(&self, now: Duration) -> bool {
        let mut state = self.state.lock();
        state.began.get_or_insert(now);
        now >= state.next_read || state.wanted_read > *self.ended.borrow()
    }

    async fn read(&self, clock: &dyn Clock) {
        let begun = clock.elapsed();
        let number = {
            let mut state = self.state.lock();
            state.last_read += 1;
            state.last_read
        };
        let read = self.fetch_keys().await;
        {
            let mut state = self.state.lock();
            match read {
                Ok(keys) => {
                    let (issuer, count) = (self.name.as_str(), keys.count());
                    tracing::debug!(issuer, keys = count, "the keys of an issuer were read");
                    state.keys = Some((Arc::new(keys), begun));
                    state.next_read = begun + REFRESH;
                }
                Err(error) => {
                    let error = &error as &dyn Error;
                    let age = state.keys.as_ref().map(|(_, read_at)| begun.saturating_sub(*read_at));
                    let age_seconds = age.map(|age| age.as_secs());
                    let issuer = self.name.as_str();
                    tracing::warn!(issuer, age_seconds, error, "the keys of an issuer can't be read");
                    state.next_read = begun + if age.is_some() { RETRY } else { FIRST_RETRY };
                }
            }
        }
        self.ended.send_replace(number);
    }

    async fn fetch_keys(&self) -> Result<KeySet, FetchError> {
        let discovered = match &self.uri {
            Some(_) => None,
            None => Some(self.discover().await?),
        };
        let uri = self.uri.as_ref().or(discovered.as_ref());
        let bytes = self.fetch.get(uri.map_or("", String::as_str)).await?;
        KeySet::read(&bytes, &self.algorithms)
    }

    /// Reads the address of the keys. A document of another issuer has none.
    async fn discover(&self) -> Result<String, FetchError> {
        let base = self.issuer.strip_suffix('/').unwrap_or(&self.issuer);
        let bytes = self
            .fetch
            .get(&format!("{base}/.well-known/openid-configuration"))
            .await?;
        let found: Discovery = serde_json::from_slice(&bytes).map_err(FetchError::Json)?;
        if found.issuer != self.issuer {
            return Err(FetchError::Form("its `issuer` is another one"));
        }
        if is_secure(&found.jwks_uri) {
            Ok(found.jwks_uri)
        } else {
            Err(FetchError::NotEncrypted)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use bytes::Bytes;
    use futures_util::future::join_all;
    use serde_json::json;
    use test_support::clock::TestClock;
    use tokio::time::advance;

    use super::*;

    /// A provider that has one key at a time; `None` while it is down.
    #[derive(Debug)]
    struct Provider {
        key: Mutex<Option<&'static str>>,
        reads: AtomicU32,
    }

    #[async_trait]
    impl Fetch for Provider {
        async fn get(&self, url: &str) -> Result<Bytes, FetchError> {
            let key = *self.key.lock();
            let key = key.ok_or(FetchError::Status(503))?;
            if url.ends_with("/.well-known/openid-configuration") {
                let document = json!({"issuer": "https://i.example", "jwks_uri": "https://i.example/jwks"});
                return Ok(document.to_string().into());
            }
            assert_eq!(url, "https://i.example/jwks");
            self.reads.fetch_add(1, Ordering::SeqCst);
            let x = "A".repeat(43);
            let keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": x, "kid": key}]});
            Ok(keys.to_string().into())
        }
    }

    fn source() -> (Arc<Provider>, Arc<KeySource>, TestClock) {
        let provider = Arc::new(Provider {
            key: Mutex::new(Some("one")),
            reads: AtomicU32::new(0),
        });
        let settings = json!({"issuer": "https://i.example", "audience": ["a"], "tenant": "acme"});
        let settings: IssuerSettings = serde_json::from_value(settings).unwrap();
        let source = KeySource::new("main", &settings, Arc::clone(&provider) as _);
        (provider, Arc::new(source), TestClock::new())
    }

    /// Runs the loop beside a test.
    async fn beside(source: &Arc<KeySource>, clock: &TestClock, test: impl Future<Output = ()>) {
        tokio::select! {
            () = source.refresh(clock) => (),
            () = test => (),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_keys_cause_one_read_per_pause() {
        let (provider, source, clock) = source();
        let find = async |id: &str| source.find(Some(id), Algorithm::Es256, &clock).await.map(drop);
        let test = async {
            find("one").await.unwrap();
            assert_eq!(provider.reads.load(Ordering::SeqCst), 1);
            let ids: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
            for found in join_all(ids.iter().map(|id| find(id))).await {
                assert_eq!(found, Err(TokenFault::UnknownKey));
            }
            assert_eq!(provider.reads.load(Ordering::SeqCst), 2);
            find("one").await.unwrap();
            *provider.key.lock() = Some("two");
            assert_eq!(find("two").await, Err(TokenFault::UnknownKey));
            advance(UNKNOWN_PAUSE).await;
            find("two").await.unwrap();
            assert_eq!(find("one").await, Err(TokenFault::UnknownKey));
        };
        beside(&source, &clock, test).await;
    }

    #[tokio::test(start_paused = true)]
    async fn keys_outlast_an_outage_of_a_day() {
        let (provider, source, clock) = source();
        let find = async |id: &str| source.find(Some(id), Algorithm::Es256, &clock).await.map(drop);
        let test = async {
            find("one").await.unwrap();
            *provider.key.lock() = None;
            sleep(MAX_AGE.checked_sub(Duration::from_secs(1)).unwrap()).await;
            find("one").await.unwrap();
            assert_eq!(find("two").await, Err(TokenFault::UnknownKey));
            sleep(Duration::from_secs(2)).await;
            assert_eq!(find("one").await, Err(TokenFault::KeysUnavailable));
            assert!(source.age(clock.elapsed()) > MAX_AGE);
            *provider.key.lock() = Some("two");
            sleep(RETRY + POLL).await;
            find("two").await.unwrap();
            assert!(source.age(clock.elapsed()) < RETRY + POLL);
        };
        beside(&source, &clock, test).await;
    }
}
