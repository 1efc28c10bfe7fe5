//! The kinds of values that a key accepts, for `#[serde(deserialize_with = "..")]` in the sections.
//!
//! Each kind states its whole accepted range, so that serde's message names the expected values.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize as _, Deserializer};

use values::usage::Cost;

/// Reads a duration such as `"30s"` or `"250ms"`, within limits in milliseconds.
pub(super) fn duration<'de, const MIN_MS: u64, const MAX_MS: u64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let (min, max) = (Duration::from_millis(MIN_MS), Duration::from_millis(MAX_MS));
    let wanted = format!(
        "a duration from {} to {}, such as \"30s\" or \"250ms\"",
        humantime::format_duration(min),
        humantime::format_duration(max)
    );
    let parse = |text: &str| {
        let duration = humantime::parse_duration(text).ok()?;
        (min..=max).contains(&duration).then_some(duration)
    };
    deserializer.deserialize_str(Text::new(wanted, parse))
}

/// Reads an integer from `MIN` to `MAX`.
pub(super) fn integer<'de, T, const MIN: i64, const MAX: i64, D>(deserializer: D) -> Result<T, D::Error>
where
    T: TryFrom<i64>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_i64(Integer::<T, MIN, MAX>(PhantomData))
}

/// Reads an optional integer from `MIN` to `MAX`.
pub(super) fn optional_integer<'de, T, const MIN: i64, const MAX: i64, D>(
    deserializer: D,
) -> Result<Option<T>, D::Error>
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
pub(super) fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_f64(Dollars)
}

/// Reads an optional amount of US dollars.
pub(super) fn optional_dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    dollars(deserializer).map(Some)
}

/// Reads an optional cost in US dollars.
pub(super) fn optional_cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cost>, D::Error> {
    dollars(deserializer).map(Cost::from_dollars)
}

/// Reads an IP address with a port; `localhost` is 127.0.0.1.
pub(super) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    deserializer.deserialize_str(Text::new(
        "an IP address or localhost, and a port, such as \"127.0.0.1:8080\" or \"[::1]:8080\"",
        |text: &str| {
            let port = text.strip_prefix("localhost:").map(str::parse);
            match port {
                Some(port) => port.ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
                None => text.parse().ok(),
            }
        },
    ))
}

/// Reads host names without ports, in lower case.
pub(super) fn host_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.' | b':');
    let is_name = |name: &str| {
        let is_address = name.parse::<IpAddr>().is_ok();
        !name.is_empty() && name.bytes().all(allowed) && (is_address || !name.contains(':'))
    };
    let names = BTreeSet::<String>::deserialize(deserializer)?;
    if let Some(wrong) = names.iter().find(|name| !is_name(name)) {
        let wanted = "host names or IP addresses without ports, such as \"agents.example.org\"";
        return Err(D::Error::invalid_value(Unexpected::Str(wrong), &wanted));
    }
    Ok(names.iter().map(|name| name.to_ascii_lowercase()).collect())
}

/// Reads the origins of web pages, in lower case.
pub(super) fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || b"-_.:[]".contains(&c);
    let is_origin = |origin: &str| {
        let host = origin
            .strip_prefix("https://")
            .or_else(|| origin.strip_prefix("http://"));
        host.is_some_and(|host| !host.is_empty() && host.bytes().all(allowed))
    };
    let origins = BTreeSet::<String>::deserialize(deserializer)?;
    let origins: BTreeSet<String> = origins.iter().map(|origin| origin.to_ascii_lowercase()).collect();
    if let Some(wrong) = origins.iter().find(|origin| !is_origin(origin)) {
        let wanted = "origins of web pages, such as \"https://app.example.org\" or \"http://localhost:6274\"";
        return Err(D::Error::invalid_value(Unexpected::Str(wrong), &wanted));
    }
    Ok(origins)
}

/// Reads a string that is not blank.
pub(super) fn filled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_str(Text::new("a string that is not empty", |text: &str| {
        (!text.trim().is_empty()).then(|| text.trim().to_owned())
    }))
}

/// Reads the name of an environment variable. Allows only upper case, so that an API key pasted by
/// mistake is rejected and not shown.
pub(super) fn variable_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_str(Text::secret(
        "the name of an environment variable in upper case, such as \"OPENAI_API_KEY\"",
        |text: &str| {
            let letter = |c: char| c.is_ascii_uppercase() || c == '_';
            let name = text.starts_with(letter) && text.chars().all(|c| letter(c) || c.is_ascii_digit());
            name.then(|| Some(text.to_owned()))
        },
    ))
}

/// Reads a path of a file.
pub(super) fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    filled(deserializer).map(|path| Some(PathBuf::from(path)))
}

/// Parses a string. The error says what was expected.
pub(super) struct Text<F> {
    wanted: String,
    parse: F,
    secret: bool,
}

impl<F> Text<F> {
    pub(super) fn new(wanted: impl Into<String>, parse: F) -> Self {
        Self {
            wanted: wanted.into(),
            parse,
            secret: false,
        }
    }

    /// Makes a parser whose errors do not repeat the value.
    pub(super) fn secret(wanted: impl Into<String>, parse: F) -> Self {
        Self {
            secret: true,
            ..Self::new(wanted, parse)
        }
    }
}

impl<T, F: Fn(&str) -> Option<T>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.wanted)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let shown = if self.secret {
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
