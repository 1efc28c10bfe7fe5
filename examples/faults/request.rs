//! The requests of callers: a list from a seed.

use serde_json::{Value, json};

use crate::random::Random;
use crate::replica::{AGENT, APPROVER};

/// Every so many requests have a thread in common.
const REQUESTS_PER_THREAD: u64 = 12;

/// The number of a request with answers is so much higher than that of the request that waits.
const CONCLUSIONS: u64 = 1_000_000;

/// A request for one run.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// The kind of the request, and its treatment.
    pub(crate) kind: Kind,
    /// The thread that it continues.
    pub(crate) thread: Option<String>,
    /// Whether it is sent a second time once it was accepted.
    pub(crate) is_repeated: bool,
}

/// The kind of a request, and its fate.
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
    /// Runs commands and writes files; every step is persisted.
    Builds,
    /// Does the same; begins again after a mishap.
    Drafts,
    /// Waits for an approval and for a result of the caller; every step is persisted.
    Approves,
    /// Brings these answers.
    Concludes,
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
            0..20 => Kind::Works,
            20..32 => Kind::Builds,
            32..42 => Kind::Approves,
            42..50 => Kind::Drafts,
            50..62 => Kind::Repeats,
            62..74 => Kind::Answers,
            74..79 => Kind::Waits,
            79..86 => Kind::IsStopped,
            86..93 => Kind::IsCancelled,
            _ => Kind::IsSteered,
        };
        let threads = (count / REQUESTS_PER_THREAD / 2).max(1);
        // A message that is queued behind a waiting run would fail.
        let may_share = random.chance(30) && kind != Kind::Approves;
        let thread = (kind == Kind::Answers || may_share).then(|| format!("thread-{}", random.below(threads)));
        Self {
            number,
            kind,
            thread,
            is_repeated: random.chance(15),
        }
    }

    /// Returns the request that brings the answers to this one, which waits for them.
    pub(crate) fn conclusion(&self) -> Self {
        Self {
            number: self.number + CONCLUSIONS,
            kind: Kind::Concludes,
            ..self.clone()
        }
    }

    /// Returns the words of the request whose calls this one answers, or else its own.
    pub(crate) fn first_note(&self) -> String {
        match self.kind {
            Kind::Concludes => format!("request-{} approves", self.number - CONCLUSIONS),
            _ => self.note(),
        }
    }

    /// Returns the words of the user, which name the request.
    pub(crate) fn note(&self) -> String {
        let verb = match self.kind {
            Kind::Works => "works",
            Kind::Builds => "builds",
            Kind::Drafts => "drafts",
            Kind::Repeats => "repeats",
            Kind::Answers | Kind::Waits => "answers",
            Kind::IsStopped | Kind::IsCancelled | Kind::IsSteered => "lingers",
            Kind::Approves => "approves",
            Kind::Concludes => "concludes",
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
            Kind::Drafts | Kind::Repeats | Kind::Answers => "session",
            _ => "step",
        };
        let mode = if self.kind == Kind::Waits { "sync" } else { "async" };
        let agent = match self.kind {
            Kind::Approves | Kind::Concludes => APPROVER,
            _ => AGENT,
        };
        let mut body = json!({
            "agent": agent,
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
