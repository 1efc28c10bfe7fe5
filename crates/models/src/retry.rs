//! Retries calls that failed before any part of a completion was passed on. A count of tokens is
//! not such a part. Knows no provider and no HTTP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::settings::RetrySettings;
use agent::ports::{ModelError, ModelErrorClass, ModelEvent, ModelStream};
use values::usage::Usage;

/// A failed attempt.
#[derive(Debug, Clone)]
pub struct AttemptError {
    /// The error for the caller, if the attempt is not retried.
    pub error: ModelError,
    /// Whether another attempt may succeed.
    pub retryable: bool,
}

impl AttemptError {
    /// Makes an error that is not retried.
    pub fn permanent(error: ModelError) -> Self {
        Self {
            error,
            retryable: false,
        }
    }

    /// Makes an error that is retried if its class and status allow it.
    pub fn judged(error: ModelError) -> Self {
        let retryable = may_pass(&error);
        Self { error, retryable }
    }
}

fn may_pass(error: &ModelError) -> bool {
    let class = matches!(
        error.class,
        ModelErrorClass::RateLimit
            | ModelErrorClass::Overload
            | ModelErrorClass::Server
            | ModelErrorClass::Network
            | ModelErrorClass::Timeout
            | ModelErrorClass::Truncated
    );
    class
        && error
            .status
            .is_none_or(|status| matches!(status, 200..=299 | 408 | 409 | 429 | 500..=599))
}

/// The events of one attempt.
pub(super) type Attempt = BoxStream<'static, Result<ModelEvent, AttemptError>>;

/// Waits between attempts.
pub(super) trait Pauses: Send + Sync + fmt::Debug {
    /// Returns a random share of a delay: a number from 0 to 1.
    fn share(&self) -> f64;
    /// Waits for the delay.
    fn pause(&self, delay: Duration) -> BoxFuture<'static, ()>;
}

/// Waits by tokio's clock, with random shares.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TokioPauses;

impl Pauses for TokioPauses {
    #[expect(clippy::cast_precision_loss, reason = "a random share needs no more than 53 bits")]
    fn share(&self) -> f64 {
        // Without entropy the whole delay is the safe choice.
        getrandom::u64().map_or(1.0, |random| (random >> 11) as f64 / (1_u64 << 53) as f64)
    }

    fn pause(&self, delay: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(delay))
    }
}

/// Retries attempts.
#[derive(Debug, Clone)]
pub(super) struct Retry {
    settings: RetrySettings,
    pauses: Arc<dyn Pauses>,
}

impl Retry {
    /// Makes a policy.
    pub(super) fn new(settings: RetrySettings, pauses: Arc<dyn Pauses>) -> Self {
        Self { settings, pauses }
    }

    /// Returns the events of the first attempt with any output, or the error of the last attempt.
    pub(super) fn run(&self, attempt: impl Fn() -> Attempt + Send + 'static) -> ModelStream {
        let delays = ExponentialBuilder::default()
            .with_factor(2.0)
            .with_min_delay(self.settings.base_delay)
            .with_max_delay(self.settings.max_delay)
            .with_max_times(self.settings.max_retries as usize)
            .build();
        let state = Box::new(Attempts {
            policy: self.clone(),
            delays,
            attempt: Some(attempt),
            current: None,
            used: Usage::default(),
            pause: None,
        });
        stream::unfold(Some(state), |state| async {
            let mut state = state?;
            match state.next().await? {
                Ok(event) => Some((Ok(event), Some(state))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }

    fn delay(&self, bound: Duration, failure: &AttemptError) -> Duration {
        let backoff = bound.mul_f64(self.pauses.share().clamp(0.0, 1.0));
        let asked = failure.error.retry_after.unwrap_or_default();
        backoff.max(asked.min(self.settings.max_delay))
    }
}

struct Attempts<D, A> {
    policy: Retry,
    delays: D,
    /// Starts an attempt; `None` once a part of a completion was passed on.
    attempt: Option<A>,
    current: Option<Attempt>,
    /// The usage of the current attempt so far.
    used: Usage,
    /// The pause before the next attempt.
    pause: Option<Duration>,
}

impl<D: Iterator<Item = Duration>, A: Fn() -> Attempt> Attempts<D, A> {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        if self.current.is_none() {
            let pause = self.pause.take();
            if let Some(delay) = pause {
                self.policy.pauses.pause(delay).await;
            }
            self.current = Some(self.attempt.as_ref()?());
            if pause.is_some() {
                return Some(Ok(ModelEvent::AttemptBegun));
            }
        }
        let failure = match self.current.as_mut()?.next().await? {
            Ok(event) => {
                match &event {
                    ModelEvent::Usage(usage) => self.used = *usage,
                    _ => self.attempt = None,
                }
                return Some(Ok(event));
            }
            Err(failure) => failure,
        };
        let bound = if failure.retryable && self.attempt.is_some() {
            self.delays.next()
        } else {
            None
        };
        let Some(bound) = bound else {
            return Some(Err(failure.error));
        };
        // The failed attempt releases its connection before the pause.
        self.current = None;
        let delay = self.policy.delay(bound, &failure);
        tracing::debug!(
            code = failure.error.class.code(),
            status = failure.error.status,
            ?delay,
            "model call is repeated"
        );
        self.pause = Some(delay);
        let usage = std::mem::take(&mut self.used);
        Some(Ok(ModelEvent::AttemptFailed {
            usage,
            class: failure.error.class,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct Recorded {
        share: f64,
        delays: Mutex<Vec<u64>>,
    }

    impl Pauses for Recorded {
        fn share(&self) -> f64 {
            self.share
        }

        fn pause(&self, delay: Duration) -> BoxFuture<'static, ()> {
            self.delays
                .lock()
                .unwrap()
                .push(u64::try_from(delay.as_millis()).unwrap());
            Box::pin(std::future::ready(()))
        }
    }

    type Item = Result<ModelEvent, AttemptError>;

    fn said(text: &str) -> ModelEvent {
        ModelEvent::TextDelta { text: text.to_owned() }
    }

    fn fails(class: ModelErrorClass, status: Option<u16>, retry_after: Option<u64>) -> Item {
        let error = ModelError {
            status,
            retry_after: retry_after.map(Duration::from_millis),
            ..ModelError::new(class, "no")
        };
        Err(AttemptError::judged(error))
    }

    /// Pauses that never end.
    #[derive(Debug)]
    struct Endless;

    impl Pauses for Endless {
        fn share(&self) -> f64 {
            1.0
        }

        fn pause(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    fn settings() -> RetrySettings {
        RetrySettings {
            max_retries: 3,
            base_delay: Duration::from_millis(100),
            max_delay: Duration::from_millis(300),
        }
    }

    /// Plays the attempts, and returns the results that are passed on, and the delays.
    fn items(share: f64, attempts: Vec<Vec<Item>>) -> (Vec<Result<ModelEvent, ModelError>>, Vec<u64>) {
        let pauses = Arc::new(Recorded {
            share,
            ..Recorded::default()
        });
        let attempts = Mutex::new(VecDeque::from(attempts));
        let stream = Retry::new(settings(), Arc::clone(&pauses) as Arc<dyn Pauses>)
            .run(move || stream::iter(attempts.lock().unwrap().pop_front().expect("one attempt too many")).boxed());
        let items = futures_util::FutureExt::now_or_never(stream.collect()).unwrap();
        let delays = pauses.delays.lock().unwrap().clone();
        (items, delays)
    }

    /// Plays the attempts and returns the texts, the final error's class and the delays.
    fn play(share: f64, attempts: Vec<Vec<Item>>) -> (Vec<String>, Option<ModelErrorClass>, Vec<u64>) {
        let (items, delays) = items(share, attempts);
        let mut texts = Vec::new();
        let mut class = None;
        for item in items {
            match item {
                Ok(ModelEvent::TextDelta { text }) => texts.push(text),
                Ok(ModelEvent::AttemptFailed { .. } | ModelEvent::AttemptBegun) => {}
                Ok(other) => panic!("{other:?}"),
                Err(error) => class = Some(error.class),
            }
        }
        (texts, class, delays)
    }

    #[test]
    fn delays_grow_to_the_limit_and_attempts_are_bounded() {
        let attempts = || vec![vec![fails(ModelErrorClass::Server, Some(500), None)]; 4];
        assert_eq!(
            play(1.0, attempts()),
            (vec![], Some(ModelErrorClass::Server), vec![100, 200, 300])
        );
        assert_eq!(
            play(0.5, attempts()).2,
            [50, 100, 150],
            "the jitter is over the whole delay"
        );
        assert_eq!(play(0.0, attempts()).2, [0, 0, 0]);
    }

    #[test]
    fn retry_after_is_honoured_and_capped() {
        let attempts = vec![
            vec![fails(ModelErrorClass::RateLimit, Some(429), Some(250))],
            vec![fails(ModelErrorClass::RateLimit, Some(429), Some(60_000))],
            vec![Ok(said("ok"))],
        ];
        assert_eq!(play(0.0, attempts), (vec!["ok".to_owned()], None, vec![250, 300]));
    }

    #[test]
    fn each_failed_attempt_is_reported_with_its_usage_and_a_count_alone_is_no_completion() {
        let usage = |total_tokens| Usage {
            total_tokens,
            ..Usage::default()
        };
        let counts = |total_tokens| ModelEvent::Usage(usage(total_tokens));
        let failed = |total_tokens| ModelEvent::AttemptFailed {
            usage: usage(total_tokens),
            class: ModelErrorClass::Truncated,
        };
        let lost = || fails(ModelErrorClass::Truncated, None, None);
        let attempts = vec![
            vec![Ok(counts(1)), Ok(counts(10)), lost()],
            vec![lost()],
            vec![Ok(counts(3)), lost()],
            vec![Ok(counts(4)), Ok(said("half")), lost()],
        ];
        let (items, delays) = items(0.0, attempts);
        let events: Vec<_> = items.iter().flatten().cloned().collect();
        let begun = ModelEvent::AttemptBegun;
        let expected = [
            counts(1),
            counts(10),
            failed(10),
            begun.clone(),
            failed(0),
            begun.clone(),
            counts(3),
            failed(3),
            begun,
            counts(4),
            said("half"),
        ];
        assert_eq!(events, expected);
        assert_eq!(
            (items.len() - events.len(), delays.len()),
            (1, 3),
            "the last failure is the end"
        );
    }

    #[test]
    fn no_attempt_begins_during_a_pause() {
        let attempts = Mutex::new(VecDeque::from([vec![fails(ModelErrorClass::Server, Some(500), None)]]));
        let mut stream = Retry::new(settings(), Arc::new(Endless))
            .run(move || stream::iter(attempts.lock().unwrap().pop_front().expect("one attempt too many")).boxed());
        let failed = futures_util::FutureExt::now_or_never(stream.next()).unwrap();
        assert!(
            matches!(failed, Some(Ok(ModelEvent::AttemptFailed { .. }))),
            "{failed:?}"
        );
        let paused = futures_util::FutureExt::now_or_never(stream.next());
        assert!(paused.is_none(), "{paused:?}");
    }

    #[test]
    fn random_shares_are_shares() {
        assert!((0..100).all(|_| (0.0..=1.0).contains(&TokioPauses.share())));
    }
}
