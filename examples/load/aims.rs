//! The aims of all figures, in one place.

use crate::database::Engine;
use crate::report::number;

/// A bound for the median of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aim {
    AtLeast(f64),
    AtMost(f64),
}

use Aim::{AtLeast, AtMost};

/// By the name of a figure.
const ON_POSTGRES: &[(&str, Aim)] = &[
    ("one turn, 1 client: p50", AtMost(1.0)),
    ("one turn, 16 clients: rate", AtLeast(3200.0)),
    ("one turn, 16 clients: CPU of the service", AtMost(0.28)),
    ("one turn, 16 clients: CPU of PostgreSQL", AtMost(0.14)),
    ("one turn, 64 clients: rate", AtLeast(3600.0)),
    ("one turn, 64 clients: p99", AtMost(40.0)),
    ("three tool steps, 16 clients: rate", AtLeast(2000.0)),
    ("durable, one step, 16 clients: rate", AtLeast(1400.0)),
    ("durable, three tool steps, 16 clients: rate", AtLeast(550.0)),
    (
        "durable, three tool steps with effects, 16 clients: rate",
        AtLeast(550.0),
    ),
    ("10000 runs drained by 3 workers: rate", AtLeast(1800.0)),
    ("200 turns of 2 KB: tables and indexes", AtMost(490.0)),
    ("row bytes, turn 200 over turn 10", AtMost(1.1)),
    ("write-ahead log, turn 200 over turn 10", AtMost(1.1)),
    ("1000 slow streams: peak memory", AtMost(110.0)),
    ("1000 slow streams: first token, p99", AtMost(75.0)),
    ("first token after the model sent it, 1 client: p50", AtMost(1.0)),
    ("first token after the model sent it, 16 clients: p50", AtMost(1.0)),
    ("ready", AtMost(60.0)),
    ("memory at rest", AtMost(28.0)),
    ("depth 10000: a turn, hot", AtMost(6.0)),
    ("depth 10000: load after a restart", AtMost(40.0)),
    ("depth 10000: round trips to load it", AtMost(2.0)),
];

const ON_SQLITE: &[(&str, Aim)] = &[("one turn, 16 clients: rate", AtLeast(1600.0))];

/// By the end of a figure's name: one tenant does its worst in many ways. Both engines have these.
const OF_MANY: &[(&str, Aim)] = &[
    ("p99 over that alone", AtMost(2.0)),
    ("a turn on /v1/responses over one on /v1/runs: p50", AtMost(1.1)),
    (
        "a turn on /v1/responses over one on /v1/runs: CPU of the service",
        AtMost(1.1),
    ),
    // Half of http.max_bytes_in_flight, and 64 MB.
    ("slow readers of a large session: memory", AtMost(192.0)),
];

impl Aim {
    /// Returns the aim of a figure.
    pub(crate) fn of(engine: &Engine, figure: &str) -> Option<Self> {
        let aims = match engine {
            Engine::Postgres(_) => ON_POSTGRES,
            Engine::Sqlite => ON_SQLITE,
        };
        let aim = aims.iter().find(|(name, _)| *name == figure);
        let aim = aim.or_else(|| OF_MANY.iter().find(|(end, _)| figure.ends_with(end)));
        aim.map(|(_, aim)| *aim)
    }

    /// Returns whether a value meets the aim.
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            AtLeast(bound) => value >= bound,
            AtMost(bound) => value <= bound,
        }
    }
}

impl std::fmt::Display for Aim {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, bound) = match self {
            AtLeast(bound) => (">=", bound),
            AtMost(bound) => ("<=", bound),
        };
        write!(formatter, "{sign} {}", number(*bound))
    }
}
