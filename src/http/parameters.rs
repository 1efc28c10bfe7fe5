//! Reads path and query parameters strictly. An unknown or malformed parameter is a problem that
//! names it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::ParseIntError;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use chrono::Datelike as _;
use percent_encoding::percent_decode_str;

use super::codes::ProblemCode;
use super::pretty::PRETTY;
use super::problem::Problem;
use values::clock::Timestamp;
use values::ids::ParseIdError;
use values::spelling::nearest;

/// The error message for an instant whose year does not have four digits (RFC 3339).
pub(super) const YEAR_RULE: &str = "a time has a year from 0000 to 9999";

/// The error message for a text that is no unsigned integer.
const NUMBER_RULE: &str = "not an integer of 0 or more, or too large a one";

/// The parameters of the path.
#[derive(Debug)]
pub(super) struct PathParameters(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for PathParameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let parameters = RawPathParams::from_request_parts(parts, state).await.map_err(|_| {
            Problem::new(
                ProblemCode::InvalidUtf8,
                "the path is not valid UTF-8 once it is decoded",
            )
        })?;
        Ok(Self(
            parameters
                .iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        ))
    }
}

impl PathParameters {
    /// Returns a parameter as it was given; empty if the route has no such parameter.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, value)| value)
    }

    /// Removes and returns a parameter; empty if the route has no such parameter.
    pub(super) fn into_text(self, name: &str) -> String {
        let mut parameters = self.0.into_iter();
        let found = parameters.find(|(known, _)| known == name);
        found.map_or_else(String::new, |(_, value)| value)
    }

    /// Returns a parameter that is an id.
    pub(super) fn id<T: FromStr<Err = ParseIdError>>(&self, name: &str) -> Result<T, Problem> {
        parse_id(name, self.text(name))
    }

    /// Returns a parameter that is an unsigned integer.
    pub(super) fn number<T: FromStr<Err = ParseIntError>>(&self, name: &str) -> Result<T, Problem> {
        parse_number(self.text(name)).ok_or_else(|| invalid(name, NUMBER_RULE))
    }
}

/// Parses an id; `name` is the parameter's name or the JSON pointer to it.
pub(super) fn parse_id<T: FromStr<Err = ParseIdError>>(name: &str, text: &str) -> Result<T, Problem> {
    text.parse()
        .map_err(|error: ParseIdError| Problem::of_field(ProblemCode::MalformedId, name, error.to_string()))
}

/// The parameters of the query. Each is taken once. A parameter that is left in the end is unknown.
#[derive(Debug)]
pub(super) struct QueryParameters {
    given: BTreeMap<String, String>,
    doubled: Option<String>,
    known: Vec<&'static str>,
}

impl<S: Send + Sync> FromRequestParts<S> for QueryParameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut given = BTreeMap::new();
        let mut doubled = None;
        let query = parts.uri.query().unwrap_or_default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = decode_pair(pair)?;
            if given.insert(name.clone(), value).is_some() {
                doubled = Some(name);
            }
        }
        // A layer handles `pretty`, so no handler takes it.
        if !matches!(given.remove(PRETTY).as_deref(), None | Some("" | "true" | "false")) {
            return Err(invalid(PRETTY, "neither `true` nor `false`"));
        }
        Ok(Self {
            given,
            doubled,
            known: Vec::new(),
        })
    }
}

/// A query without parameters, for handlers that take no body. Problems of a body come before
/// problems of the query, so that other handlers take [`QueryParameters`] and finish them first.
#[derive(Debug)]
pub(super) struct NoParameters;

impl<S: Send + Sync> FromRequestParts<S> for NoParameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = QueryParameters::from_request_parts(parts, state).await?;
        query.finish().map(|()| Self)
    }
}

impl QueryParameters {
    /// Takes a parameter as it was given.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        self.known.push(name);
        self.given.remove(name).map(|value| check_text(name, value)).transpose()
    }

    /// Takes a parameter and parses it.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Result<Option<T>, Problem> {
        self.read(name, |text| {
            text.parse().map_err(|error: T::Err| invalid(name, error.to_string()))
        })
    }

    /// Takes a parameter that is a list with commas, and parses each value. Returns each once; none
    /// if the parameter is absent.
    pub(super) fn parsed_list<T>(&mut self, name: &'static str) -> Result<Vec<T>, Problem>
    where
        T: FromStr<Err: Display> + PartialEq,
    {
        let mut values = Vec::new();
        for text in self.text(name)?.iter().flat_map(|list| list.split(',')) {
            let value = text.parse::<T>();
            let value = value.map_err(|error| invalid(name, error.to_string()))?;
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Ok(values)
    }

    /// Takes a parameter that is an unsigned integer.
    pub(super) fn number<T: FromStr<Err = ParseIntError>>(&mut self, name: &'static str) -> Result<Option<T>, Problem> {
        self.read(name, |text| {
            parse_number(text).ok_or_else(|| invalid(name, NUMBER_RULE))
        })
    }

    /// Takes a parameter that is an id.
    pub(super) fn id<T: FromStr<Err = ParseIdError>>(&mut self, name: &'static str) -> Result<Option<T>, Problem> {
        self.read(name, |text| parse_id(name, text))
    }

    /// Takes a parameter that is an instant (RFC 3339).
    pub(super) fn time(&mut self, name: &'static str) -> Result<Option<Timestamp>, Problem> {
        self.read(name, |text| {
            let instant = chrono::DateTime::parse_from_rfc3339(text).map(|instant| instant.to_utc());
            let instant = instant.map_err(|_| invalid(name, "not a time such as 2026-01-31T12:00:00Z (RFC 3339)"))?;
            if has_plain_year(instant) {
                Ok(instant)
            } else {
                Err(invalid(name, YEAR_RULE))
            }
        })
    }

    fn read<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Result<Option<T>, Problem> {
        self.text(name)?.map(|text| parse(&text)).transpose()
    }

    /// Takes all parameters whose names begin with `prefix`, by the rest of their names.
    pub(super) fn prefixed(&mut self, prefix: &'static str) -> Result<Vec<(String, String)>, Problem> {
        let names: Vec<_> = self
            .given
            .keys()
            .filter(|name| name.starts_with(prefix))
            .cloned()
            .collect();
        let taken = names.into_iter().filter_map(|name| self.given.remove_entry(&name));
        taken
            .map(|(name, value)| {
                Ok((
                    check_text(prefix, name[prefix.len()..].to_owned())?,
                    check_text(prefix, value)?,
                ))
            })
            .collect()
    }

    /// Checks that no unknown parameter is left.
    pub(super) fn finish(self) -> Result<(), Problem> {
        if let Some(name) = self.doubled {
            return Err(invalid(&name, "the parameter is given twice"));
        }
        let Some(name) = self.given.into_keys().next() else {
            return Ok(());
        };
        let mut all = self.known;
        all.push(PRETTY);
        let advice = nearest(&name, all.iter().copied()).map(|known| format!("; did you mean `{known}`?"));
        let message = format!(
            "unknown parameter, known are {}{}",
            all.join(", "),
            advice.unwrap_or_default()
        );
        Err(Problem::of_field(ProblemCode::UnknownParameter, name, message))
    }
}

/// Parses an integer that consists of digits only.
pub(super) fn parse_number<T: FromStr<Err = ParseIntError>>(text: &str) -> Option<T> {
    // Rust's own parser also accepts a plus.
    let is_plain = text.bytes().all(|c| c.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Returns whether an instant has a year of four digits, as RFC 3339 requires.
pub(super) fn has_plain_year(instant: Timestamp) -> bool {
    (0..=9999).contains(&instant.year())
}

/// Decodes `NAME=VALUE`. Rejects text that is not UTF-8, since other decoders may read it
/// differently.
fn decode_pair(pair: &str) -> Result<(String, String), Problem> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).collect::<Vec<u8>>();
    let name = decode(name);
    let value = String::from_utf8(decode(value));
    match (String::from_utf8(name), value) {
        (Ok(name), Ok(value)) => Ok((name, value)),
        (name, _) => {
            let name = name.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            let words = "the parameter is not valid UTF-8 once it is decoded";
            Err(Problem::of_field(ProblemCode::InvalidUtf8, name, words))
        }
    }
}

/// Makes the problem of a parameter that can't be used.
pub(super) fn invalid(name: &str, message: impl Into<String>) -> Problem {
    Problem::of_field(ProblemCode::InvalidParameter, name, message)
}

fn check_text(name: &str, value: String) -> Result<String, Problem> {
    if value.contains('\0') {
        return Err(Problem::of_field(
            ProblemCode::NulCharacter,
            name,
            "NUL characters can't be stored",
        ));
    }
    Ok(value)
}
