//! Requests to models, at the port to them. So those for summaries count, too.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::Metrics;
use super::names::{ByName, OTHER};
use super::registration::Registration;
use agent::ports::{
    Model, ModelCatalog, ModelError, ModelEvent, ModelLookupError, ModelRequest, ModelStream, ProviderInfo,
    StructuredOutput,
};
use values::model_ref::ModelRef;
use values::usage::{Price, PriceTable, Usage};

/// The upper bounds of the durations of requests, in seconds.
const SECONDS: [f64; 6] = [0.5, 1.0, 2.5, 10.0, 30.0, 120.0];
/// The upper bounds of the time to the first token, in seconds.
const FIRST_SECONDS: [f64; 6] = [0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
const OK: &str = "ok";
/// The end of a request whose caller did not wait for it.
const ABANDONED: &str = "abandoned";

/// Metrics of models.
#[derive(Debug)]
pub struct ModelMetrics {
    durations: Family<Requested, Histogram, fn() -> Histogram>,
    first_tokens: Family<Named, Histogram, fn() -> Histogram>,
    attempts: Family<Requested, Counter>,
    tokens: Family<Counted, Counter>,
    costs: Family<Named, Counter<f64, AtomicU64>>,
    by_model: ByName<ModelRef, OneModel, 30>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    provider: Arc<str>,
    model: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Requested {
    provider: Arc<str>,
    model: Arc<str>,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Counted {
    provider: Arc<str>,
    model: Arc<str>,
    kind: &'static str,
}

/// The metrics of one model, for the common case of a request that succeeds.
#[derive(Debug)]
struct OneModel {
    name: Named,
    duration: Histogram,
    first_token: Histogram,
    attempts: Counter,
    input: Counter,
    output: Counter,
    cache_read: Counter,
    cache_write: Counter,
    reasoning: Counter,
    cost: Counter<f64, AtomicU64>,
}

impl ModelMetrics {
    pub(super) fn register(registration: &mut Registration) -> Self {
        let metrics = Self {
            durations: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            first_tokens: Family::new_with_constructor(|| Histogram::new(FIRST_SECONDS)),
            attempts: Family::default(),
            tokens: Family::default(),
            costs: Family::default(),
            by_model: ByName::default(),
        };
        registration.add(
            "model_request_duration_seconds",
            &["provider", "model", "outcome"],
            "From a request to a model to the end of its completion, with all attempts",
            &metrics.durations,
        );
        registration.add(
            "model_time_to_first_token_seconds",
            &["provider", "model"],
            "From a request to a model to the first piece of its completion",
            &metrics.first_tokens,
        );
        registration.add(
            "model_attempts",
            &["provider", "model", "outcome"],
            "Attempts to ask a model, by what became of them",
            &metrics.attempts,
        );
        registration.add(
            "model_tokens",
            &["provider", "model", "kind"],
            "Tokens that providers have counted",
            &metrics.tokens,
        );
        registration.add(
            "cost_dollars",
            &["provider", "model"],
            "What the counted tokens cost, as far as prices are known",
            &metrics.costs,
        );
        metrics
    }

    /// Returns the metrics of a model that has responded. Others have none of their own, so that no
    /// caller takes the series of models by asking for names that do not exist.
    fn of(&self, model: &ModelRef, has_responded: bool) -> Arc<OneModel> {
        if has_responded {
            self.by_model.of(model, |model| self.named(model))
        } else {
            self.by_model.known(model, || self.named(None))
        }
    }

    fn named(&self, model: Option<&ModelRef>) -> OneModel {
        let (provider, model) = model.map_or((OTHER, OTHER), |model| (model.provider(), model.model()));
        self.one(Named {
            provider: provider.into(),
            model: model.into(),
        })
    }

    fn one(&self, name: Named) -> OneModel {
        let tokens = |kind| {
            let Named { provider, model } = name.clone();
            self.tokens.get_or_create_owned(&Counted { provider, model, kind })
        };
        OneModel {
            duration: self.durations.get_or_create_owned(&name.with(OK)),
            first_token: self.first_tokens.get_or_create_owned(&name),
            attempts: self.attempts.get_or_create_owned(&name.with(OK)),
            input: tokens("input"),
            output: tokens("output"),
            cache_read: tokens("cache_read"),
            cache_write: tokens("cache_write"),
            reasoning: tokens("reasoning"),
            cost: self.costs.get_or_create_owned(&name),
            name,
        }
    }
}

impl Named {
    fn with(&self, outcome: &'static str) -> Requested {
        let Self { provider, model } = self.clone();
        Requested {
            provider,
            model,
            outcome,
        }
    }
}

impl OneModel {
    fn used(&self, usage: &Usage, price: Option<&Price>) {
        for (counter, tokens) in [
            (&self.input, usage.input_tokens),
            (&self.output, usage.output_tokens),
            (&self.cache_read, usage.cache_read_tokens),
            (&self.cache_write, usage.cache_write_tokens),
            (&self.reasoning, usage.reasoning_tokens),
        ] {
            if tokens > 0 {
                counter.inc_by(tokens);
            }
        }
        self.cost.inc_by(usage.priced(price).known_cost().dollars());
    }
}

/// Models whose requests are counted.
#[derive(Debug)]
pub struct ObservedModels {
    models: Arc<dyn ModelCatalog>,
    prices: PriceTable,
    metrics: Arc<Metrics>,
}

impl ObservedModels {
    /// Counts the requests to models, at these prices.
    pub fn new(models: Arc<dyn ModelCatalog>, prices: PriceTable, metrics: Arc<Metrics>) -> Self {
        Self {
            models,
            prices,
            metrics,
        }
    }
}

impl ModelCatalog for ObservedModels {
    fn model(&self, name: &ModelRef) -> Result<Arc<dyn Model>, ModelLookupError> {
        let model = self.models.model(name)?;
        Ok(Arc::new(ObservedModel {
            model,
            price: self.prices.price(name),
            name: name.clone(),
            metrics: Arc::clone(&self.metrics),
        }))
    }

    fn check(&self, name: &ModelRef) -> Result<(), ModelLookupError> {
        self.models.check(name)
    }

    fn names(&self) -> Vec<ModelRef> {
        self.models.names()
    }

    fn providers(&self) -> Vec<ProviderInfo> {
        self.models.providers()
    }
}

#[derive(Debug)]
struct ObservedModel {
    model: Arc<dyn Model>,
    name: ModelRef,
    price: Option<Price>,
    metrics: Arc<Metrics>,
}

impl Model for ObservedModel {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        let mut seen = Seen {
            model: self.name.clone(),
            metrics: Arc::clone(&self.metrics),
            price: self.price,
            began: Instant::now(),
            first: None,
            failed: Vec::new(),
            is_in_attempt: true,
            usage: Usage::NOTHING,
            attempt_usage: Usage::NOTHING,
            outcome: ABANDONED,
        };
        let stream = self.model.stream(request);
        stream.inspect(move |event| seen.note(event)).boxed()
    }

    fn structured_output(&self) -> StructuredOutput {
        self.model.structured_output()
    }
}

/// What was seen of a request. Counted when its stream is dropped.
struct Seen {
    model: ModelRef,
    metrics: Arc<Metrics>,
    price: Option<Price>,
    began: Instant,
    /// When the first piece of the completion has come.
    first: Option<Duration>,
    /// The ends of the attempts that were repeated.
    failed: Vec<&'static str>,
    /// Whether an attempt is in progress, and not the pause before one.
    is_in_attempt: bool,
    /// The usage of earlier attempts, and of the last one.
    usage: Usage,
    attempt_usage: Usage,
    outcome: &'static str,
}

impl Seen {
    fn note(&mut self, event: &Result<ModelEvent, ModelError>) {
        match event {
            Ok(ModelEvent::Usage(usage)) => self.attempt_usage = *usage,
            Ok(ModelEvent::AttemptFailed { usage, class }) => {
                self.usage = self.usage + *usage;
                self.attempt_usage = Usage::NOTHING;
                self.failed.push(class.as_str());
                self.is_in_attempt = false;
            }
            Ok(ModelEvent::AttemptBegun) => self.is_in_attempt = true,
            Ok(ModelEvent::Completed(response)) => {
                self.attempt_usage = response.usage;
                self.outcome = OK;
            }
            Ok(
                ModelEvent::TextDelta { .. }
                | ModelEvent::ReasoningDelta { .. }
                | ModelEvent::RefusalDelta { .. }
                | ModelEvent::ToolCallStarted { .. }
                | ModelEvent::ToolCallDelta { .. },
            ) => {
                let began = self.began;
                self.first.get_or_insert_with(|| began.elapsed());
            }
            Err(error) => self.outcome = error.class.as_str(),
        }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let metrics = &self.metrics.models;
        let model = metrics.of(&self.model, self.outcome == OK);
        model.used(&(self.usage + self.attempt_usage), self.price.as_ref());
        if let Some(first) = self.first {
            model.first_token.observe(first.as_secs_f64());
        }
        let last = self.is_in_attempt.then_some(self.outcome);
        for outcome in self.failed.iter().copied().chain(last) {
            if outcome == OK {
                model.attempts.inc();
            } else {
                metrics.attempts.get_or_create(&model.name.with(outcome)).inc();
            }
        }
        let duration = self.began.elapsed().as_secs_f64();
        if self.outcome == OK {
            model.duration.observe(duration);
        } else {
            let durations = &metrics.durations;
            durations
                .get_or_create(&model.name.with(self.outcome))
                .observe(duration);
        }
    }
}
