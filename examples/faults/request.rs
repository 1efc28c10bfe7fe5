//! What callers ask for: a list of requests from a seed.

use serde_json::{Value, json};

use crate::random::Random;
use crate::replica::AGENT;

/// Every so many requests have a thread in common.
const REQUESTS_PER_THREAD: u64 = 12;

/// A request for one run.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// What is asked and how it is treated.
    pub(crate) kind: Kind,
    /// The thread that it continues.
    pub(crate) thread: Option<String>,
    /// Whether it is sent a second time once it was accepted.
    pub(crate) is_repeated: bool,
}

/// What is asked for, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Calls both tools; every step is persisted.
    Works,
    /// Calls the idempotent tool; begins again after a mishap.
    Repeats,
    /// Sends a text.
    Answers,
    /// Sends a text, and the caller waits for it with the connection open.
    Waits,
    /// Is stopped at some time.
    IsStopped,
    /// Is cancelled at some time.
    IsCancelled,
    /// Is stopped at some time.
    IsSteered,
}

impl Request {
    /// Lists the requests of a seed.
    pub(crate) fn list(seed: u64, count: u64) -> Vec<Self> {
        let mut random = Random::new(seed, 1);
        (1..=count)
            .map(|number| Self::draw(number, count, &mut random))
            .collect()
    }

    fn draw(number: u64, count: u64, random: &mut Random) -> Self {
        let kind = match random.below(100) {
            0..40 => Kind::Works,
            40..58 => Kind::Repeats,
            58..74 => Kind::Answers,
            74..79 => Kind::Waits,
            79..86 => Kind::IsStopped,
            86..93 => Kind::IsCancelled,
            _ => Kind::IsSteered,
        };
        let threads = (count / REQUESTS_PER_THREAD / 2).max(1);
        let thread = (kind == Kind::Answers || random.chance(30)).then(|| format!("thread-{}", random.below(threads)));
        Self {
            number,
            kind,
            thread,
            is_repeated: random.chance(15),
        }
    }

    /// Returns the words of the user, which name the request.
    pub(crate) fn note(&self) -> String {
        let verb = match self.kind {
            Kind::Works => "works",
            Kind::Repeats => "repeats",
            Kind::Answers | Kind::Waits => "answers",
            Kind::IsStopped | Kind::IsCancelled | Kind::IsSteered => "lingers",
        };
        format!("request-{} {verb}", self.number)
    }

    /// Returns the key by which the request is known when it is repeated.
    pub(crate) fn key(&self) -> String {
        format!("key-{}", self.number)
    }

    /// Returns the body.
    pub(crate) fn body(&self) -> Value {
        let durability = match self.kind {
            Kind::Repeats | Kind::Answers => "session",
            _ => "step",
        };
        let mode = if self.kind == Kind::Waits { "sync" } else { "async" };
        let mut body = json!({
            "agent": AGENT,
            "input": self.note(),
            "mode": mode,
            "durability": durability,
            "metadata": {"request": self.number},
        });
        if let Some(thread) = &self.thread {
            body["thread"] = json!(thread);
            body["if_busy"] = json!("queue");
        }
        body
    }
}
