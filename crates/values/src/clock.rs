//! Provides the time through a [`Clock`], so that tests can set it. Only this file may read the
//! system clock.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use chrono::{DateTime, Datelike as _, SubsecRound as _, TimeDelta, Timelike as _, Utc};
use serde::{Serialize as _, Serializer};

/// An instant in UTC with microsecond precision, which every store retains exactly.
pub type Timestamp = DateTime<Utc>;

/// A source of the current time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time, truncated to microseconds.
    fn now(&self) -> Timestamp;

    /// Returns the time since some instant. Setting the time of day does not change it.
    fn elapsed(&self) -> Duration;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Utc::now().trunc_subsecs(6)
    }

    fn elapsed(&self) -> Duration {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGAN.elapsed()
    }
}

/// A clock that begins with the time of another one, and does not follow when that one is set.
#[derive(Debug)]
pub struct SteadyClock {
    clock: Arc<dyn Clock>,
    began_at: Timestamp,
    began: Duration,
}

impl SteadyClock {
    /// Begins with the present time.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (began_at, began) = (clock.now(), clock.elapsed());
        Self { clock, began_at, began }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        let passed = TimeDelta::from_std(self.elapsed().saturating_sub(self.began)).unwrap_or_default();
        (self.began_at + passed).trunc_subsecs(6)
    }

    fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }
}

/// When something ends, by the clock that says so.
#[derive(Debug, Clone)]
pub struct Deadline {
    at: Timestamp,
    clock: Arc<dyn Clock>,
}

impl Deadline {
    /// Ends at a time of this clock.
    pub fn new(at: Timestamp, clock: Arc<dyn Clock>) -> Self {
        Self { at, clock }
    }

    /// Returns the time of its clock.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the time that is left, at least 0.
    pub fn time_left(&self) -> Duration {
        (self.at - self.clock.now()).to_std().unwrap_or_default()
    }
}

/// Returns the nanoseconds since 1970. A time before then counts as 1.
pub fn nanoseconds(time: Timestamp) -> u64 {
    let nanoseconds = time
        .timestamp_nanos_opt()
        .and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
    nanoseconds.unwrap_or_default().max(1)
}

/// Serialises a time exactly as chrono does, with a fraction of its instructions. A run writes its
/// times a hundred times: in events, messages, steps and records.
pub fn write_time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    let mut text = *b"0000-00-00T00:00:00.000000000Z";
    match write_text(&mut text, *time) {
        Some(written) => serializer.serialize_str(written),
        None => time.serialize(serializer),
    }
}

/// Serialises a time like [`write_time`], or null.
pub fn write_some_time<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => write_time(time, serializer),
        None => serializer.serialize_none(),
    }
}

/// Writes a time as RFC 3339 with 0, 3, 6 or 9 digits after the second, as few as it needs. Returns
/// `None` for a leap second, and for a year that does not have four digits.
fn write_text(text: &mut [u8; 30], time: Timestamp) -> Option<&str> {
    let (date, of_day) = (time.date_naive(), time.time());
    let year = u32::try_from(date.year()).ok().filter(|year| *year <= 9999)?;
    let nanosecond = Some(of_day.nanosecond()).filter(|nanosecond| *nanosecond < 1_000_000_000)?;
    write_digits(&mut text[..4], year);
    write_digits(&mut text[5..7], date.month());
    write_digits(&mut text[8..10], date.day());
    write_digits(&mut text[11..13], of_day.hour());
    write_digits(&mut text[14..16], of_day.minute());
    write_digits(&mut text[17..19], of_day.second());
    let end = match nanosecond {
        0 => 19,
        milliseconds if milliseconds % 1_000_000 == 0 => 23,
        microseconds if microseconds % 1_000 == 0 => 26,
        _ => 29,
    };
    write_digits(&mut text[20..29], nanosecond);
    text[end] = b'Z';
    str::from_utf8(&text[..=end]).ok()
}

fn write_digits(text: &mut [u8], mut number: u32) {
    for digit in text.iter_mut().rev() {
        *digit = b"0123456789"[(number % 10) as usize];
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(time: Timestamp) -> String {
        let mut text = Vec::new();
        write_time(&time, &mut serde_json::Serializer::new(&mut text)).unwrap();
        String::from_utf8(text).unwrap()
    }

    proptest! {
        #[test]
        fn a_time_is_written_as_chrono_does(
            second in -99_999_999_999_i64..300_000_000_000,
            nanosecond in 0_u32..2_000_000_000,
            unit in prop::sample::select(vec![1, 1_000, 1_000_000, 1_000_000_000]),
        ) {
            // More than a billion is a leap second, which only the last second of a minute has.
            let second = if nanosecond < 1_000_000_000 { second } else { second.div_euclid(60) * 60 + 59 };
            let time = DateTime::from_timestamp(second, nanosecond / unit * unit).unwrap();
            prop_assert_eq!(written(time), serde_json::to_string(&time).unwrap());
        }
    }

    #[test]
    fn a_time_that_may_be_none_is_written() {
        let mut text = Vec::new();
        for time in [None, DateTime::from_timestamp(0, 0)] {
            write_some_time(&time, &mut serde_json::Serializer::new(&mut text)).unwrap();
        }
        assert_eq!(text, b"null\"1970-01-01T00:00:00Z\"");
    }
}
