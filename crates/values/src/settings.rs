//! The kinds of values that a setting accepts, for `#[serde(deserialize_with = "..")]` in the
//! settings of modules.
//!
//! Each kind states its whole accepted range, so that serde's message names the expected values.
//! Reads no file and no environment.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize as _, Deserializer};

use crate::usage::Cost;

/// Reads a duration such as `"30s"` or `"250ms"`, within limits in milliseconds.
pub fn duration<'de, const MIN_MS: u64, const MAX_MS: u64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let (min, max) = (Duration::from_millis(MIN_MS), Duration::from_millis(MAX_MS));
    let wanted = format!(
        "a duration from {} to {}, such as \"30s\" or \"250ms\"",
        humantime::format_duration(min),
        humantime::format_duration(max)
    );
    let parse = |words: &str| {
        let duration = humantime::parse_duration(words).ok()?;
        (min..=max).contains(&duration).then_some(duration)
    };
    text(deserializer, &wanted, parse)
}

/// Reads an optional duration within limits in milliseconds.
pub fn optional_duration<'de, const MIN_MS: u64, const MAX_MS: u64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    duration::<MIN_MS, MAX_MS, D>(deserializer).map(Some)
}

/// Reads an integer from `MIN` to `MAX`.
pub fn integer<'de, T, const MIN: i64, const MAX: i64, D>(deserializer: D) -> Result<T, D::Error>
where
    T: TryFrom<i64>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_i64(Integer::<T, MIN, MAX>(PhantomData))
}

/// Reads an optional integer from `MIN` to `MAX`.
pub fn optional_integer<'de, T, const MIN: i64, const MAX: i64, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: TryFrom<i64>,
    D: Deserializer<'de>,
{
    integer::<T, MIN, MAX, D>(deserializer).map(Some)
}

/// The largest amount of US dollars: far more than any price, and far less than the largest
/// representable cost.
const MAX_DOLLARS: f64 = 1e6;

/// Reads an amount of US dollars.
pub fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_f64(Dollars)
}

/// Reads an optional amount of US dollars.
pub fn optional_dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    dollars(deserializer).map(Some)
}

/// Reads an optional cost in US dollars.
pub fn optional_cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cost>, D::Error> {
    dollars(deserializer).map(Cost::from_dollars)
}

/// Reads a string that is not blank.
pub fn filled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text(deserializer, "a string that is not empty", |words| {
        (!words.trim().is_empty()).then(|| words.trim().to_owned())
    })
}

/// Reads the name of an environment variable. Allows only upper case, so that an API key pasted by
/// mistake is rejected and not shown.
pub fn variable_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    secret_text(
        deserializer,
        "the name of an environment variable in upper case, such as \"OPENAI_API_KEY\"",
        |words| {
            let letter = |c: char| c.is_ascii_uppercase() || c == '_';
            let name = words.starts_with(letter) && words.chars().all(|c| letter(c) || c.is_ascii_digit());
            name.then(|| Some(words.to_owned()))
        },
    )
}

/// Reads a path of a file.
pub fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    filled(deserializer).map(|path| Some(PathBuf::from(path)))
}

/// Reads a path of a directory.
pub fn directory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    filled(deserializer).map(PathBuf::from)
}

/// Reads a path; the empty string is none.
pub fn optional_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = String::deserialize(deserializer)?;
    Ok((!path.trim().is_empty()).then(|| PathBuf::from(path.trim())))
}

/// Reads a string that `parse` accepts. The error says what was wanted.
pub fn text<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    wanted: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Text {
        wanted,
        parse,
        is_secret: false,
    })
}

/// Reads a string like [`text`]. The error does not repeat the value.
pub fn secret_text<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    wanted: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Text {
        wanted,
        parse,
        is_secret: true,
    })
}

struct Text<'a, F> {
    wanted: &'a str,
    parse: F,
    is_secret: bool,
}

impl<T, F: Fn(&str) -> Option<T>> Visitor<'_> for Text<'_, F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wanted)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let shown = if self.is_secret {
            Unexpected::Other("a string (not shown)")
        } else {
            Unexpected::Str(text)
        };
        (self.parse)(text).ok_or_else(|| E::invalid_value(shown, &self))
    }
}

struct Integer<T, const MIN: i64, const MAX: i64>(PhantomData<T>);

impl<T: TryFrom<i64>, const MIN: i64, const MAX: i64> Visitor<'_> for Integer<T, MIN, MAX> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if MAX == i64::MAX {
            write!(f, "an integer of {MIN} or more")
        } else {
            write!(f, "an integer from {MIN} to {MAX}")
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let within = (MIN..=MAX).contains(&number);
        let converted = within.then(|| T::try_from(number).ok()).flatten();
        converted.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }
}

struct Dollars;

impl Visitor<'_> for Dollars {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an amount of US dollars from 0 to {MAX_DOLLARS}")
    }

    fn visit_f64<E: Error>(self, amount: f64) -> Result<f64, E> {
        if (0.0..=MAX_DOLLARS).contains(&amount) {
            Ok(amount)
        } else {
            Err(E::invalid_value(Unexpected::Float(amount), &self))
        }
    }

    fn visit_i64<E: Error>(self, amount: i64) -> Result<f64, E> {
        let dollars = i32::try_from(amount).map(f64::from).ok();
        dollars
            .filter(|dollars| (0.0..=MAX_DOLLARS).contains(dollars))
            .ok_or_else(|| E::invalid_value(Unexpected::Signed(amount), &self))
    }
}
