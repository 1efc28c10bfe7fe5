//! Limits of spending: what all runs of a tenant, of an API key or of an agent together may cost in
//! a day or a month.
//!
//! A run belongs to the day and the month in which it was made, in the time zone of its tenant,
//! however long it works. So a clock that is set back, or two replicas at midnight, can't count a
//! run twice or never.

use std::fmt;

use chrono::{Datelike as _, Days, LocalResult, Months, NaiveDate, NaiveTime, TimeDelta, TimeZone as _, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::ids::ApiKeyId;
use crate::usage::Cost;

/// The most that runs together may cost. An absent limit does not apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpendLimits {
    /// In a day, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<Cost>,
    /// In a month, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month: Option<Cost>,
}

/// The runs whose cost a limit counts together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpendScope {
    /// All runs of the tenant.
    Tenant,
    /// The runs of an agent, with those of its subagents.
    Agent(String),
    /// The runs that callers with an API key have started.
    Key(ApiKeyId),
}

/// A span of time for which a limit of spending applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpendPeriod {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the first of the next one.
    Month,
}

/// A limit of spending in one period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendLimit {
    /// The runs that it counts.
    pub scope: SpendScope,
    /// The kind of the period.
    pub period: SpendPeriod,
    /// The first day of the period.
    pub first_day: NaiveDate,
    /// The most that may be spent.
    pub most: Cost,
    /// When the period ends, and nothing is spent any more.
    pub resets_at: Timestamp,
}

impl SpendLimits {
    /// Returns whether no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the limits of the periods to which a time belongs.
    pub fn at(&self, time: Timestamp, zone: Tz, scope: &SpendScope) -> impl Iterator<Item = SpendLimit> {
        let limits = [(SpendPeriod::Day, self.day), (SpendPeriod::Month, self.month)];
        limits.into_iter().filter_map(move |(period, most)| {
            let (first_day, resets_at) = period.of(time, zone);
            Some(SpendLimit {
                scope: scope.clone(),
                period,
                first_day,
                most: most?,
                resets_at,
            })
        })
    }
}

impl SpendPeriod {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Day, Self::Month];

    /// Returns the first day of the period to which a time belongs, and the end of the period.
    fn of(self, time: Timestamp, zone: Tz) -> (NaiveDate, Timestamp) {
        let today = time.with_timezone(&zone).date_naive();
        let first = self.first_day(today);
        let next = match self {
            Self::Day => today.checked_add_days(Days::new(1)),
            Self::Month => first.checked_add_months(Months::new(1)),
        };
        (first, next.map_or(Timestamp::MAX_UTC, |next| midnight(next, zone)))
    }

    /// Returns the first day of the period of a day.
    pub fn first_day(self, day: NaiveDate) -> NaiveDate {
        match self {
            Self::Day => day,
            Self::Month => day.with_day(1).unwrap_or(day),
        }
    }

    /// Returns the name of the period of a day, which sorts by time: `2026-12-01` or `2026-12`.
    pub fn name_of(self, day: NaiveDate) -> String {
        let form = match self {
            Self::Day => "%Y-%m-%d",
            Self::Month => "%Y-%m",
        };
        day.format(form).to_string()
    }

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }
}

impl SpendLimit {
    /// Returns the name of the period, which sorts by time: `2026-12-01` or `2026-12`.
    pub fn period_name(&self) -> String {
        self.period.name_of(self.first_day)
    }
}

impl fmt::Display for SpendScope {
    /// Writes `tenant`, `agent:NAME` or `key:ID`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant => f.write_str("tenant"),
            Self::Agent(name) => write!(f, "agent:{name}"),
            Self::Key(key_id) => write!(f, "key:{key_id}"),
        }
    }
}

/// Returns when a day begins. Where its first hour is left out, it begins an hour later; where that
/// hour comes twice, with the first one.
pub fn midnight(day: NaiveDate, zone: Tz) -> Timestamp {
    let local = day.and_time(NaiveTime::MIN);
    let begins = match zone.from_local_datetime(&local) {
        LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => Some(time),
        LocalResult::None => zone.from_local_datetime(&(local + TimeDelta::hours(1))).earliest(),
    };
    begins.map_or_else(|| local.and_utc(), |time| time.with_timezone(&Utc))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> SpendLimits {
        SpendLimits {
            day: Cost::from_dollars(1.0),
            month: Cost::from_dollars(20.0),
        }
    }

    #[test]
    fn a_time_belongs_to_a_day_and_a_month_of_its_zone() {
        for (time, zone, expected) in [
            (
                "2026-12-31T23:30:00Z",
                "UTC",
                [
                    ("2026-12-31", "2027-01-01T00:00:00Z"),
                    ("2026-12", "2027-01-01T00:00:00Z"),
                ],
            ),
            (
                "2026-12-31T23:30:00Z",
                "Europe/Berlin",
                [
                    ("2027-01-01", "2027-01-01T23:00:00Z"),
                    ("2027-01", "2027-01-31T23:00:00Z"),
                ],
            ),
            // The month ends in another offset than it began.
            (
                "2026-10-25T12:00:00Z",
                "Europe/Berlin",
                [
                    ("2026-10-25", "2026-10-25T23:00:00Z"),
                    ("2026-10", "2026-10-31T23:00:00Z"),
                ],
            ),
            // In Beirut this day begins at one o'clock.
            (
                "2026-03-28T12:00:00Z",
                "Asia/Beirut",
                [
                    ("2026-03-28", "2026-03-28T22:00:00Z"),
                    ("2026-03", "2026-03-31T21:00:00Z"),
                ],
            ),
        ] {
            let found: Vec<_> = limits()
                .at(time.parse().unwrap(), zone.parse().unwrap(), &SpendScope::Tenant)
                .map(|limit| (limit.period_name(), limit.resets_at))
                .collect();
            let expected = expected.map(|(name, end)| (name.to_owned(), end.parse::<Timestamp>().unwrap()));
            assert_eq!(found, expected, "{time} {zone}");
        }
    }

    #[test]
    fn an_absent_limit_does_not_apply() {
        let day_only = SpendLimits {
            month: None,
            ..limits()
        };
        let scope = SpendScope::Agent("support".to_owned());
        let found: Vec<_> = day_only.at(Timestamp::UNIX_EPOCH, Tz::UTC, &scope).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].scope.to_string(), found[0].period.as_str()),
            ("agent:support".to_owned(), "day")
        );
        assert_eq!(
            SpendLimits::default()
                .at(Timestamp::UNIX_EPOCH, Tz::UTC, &scope)
                .count(),
            0
        );
    }
}
