//! The claims of a token whose signature is valid (RFC 7519, RFC 9068).

use std::time::Duration;

use chrono::{DateTime, TimeDelta};

use super::fault::TokenFault;
use values::clock::Timestamp;
use values::json::{Object, Value};

/// The most bytes of a name in a claim that is recorded.
const MAX_NAME: usize = 255;
/// The most bytes of the JSON of `act`, which is recorded.
const MAX_ACTOR: usize = 1_024;

/// The claims of a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claims<'a>(pub(super) &'a Object);

/// The times of a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) issued_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

impl<'a> Claims<'a> {
    /// Returns the claim at a JSON pointer.
    pub(super) fn at(self, pointer: &str) -> Option<&'a Value> {
        let mut names = pointer.strip_prefix('/')?.split('/');
        let unescaped = |name: &str| name.replace("~1", "/").replace("~0", "~");
        let first = self.0.get(&unescaped(names.next()?));
        names.fold(first, |value, name| value?.get(unescaped(name)))
    }

    /// Returns a text that must be there.
    pub(super) fn text(self, pointer: &str) -> Result<&'a str, TokenFault> {
        let text = self.at(pointer).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).ok_or_else(|| missing(pointer))
    }

    /// Returns a name that is recorded; `None` if there is none.
    pub(super) fn name(self, pointer: &str) -> Result<Option<String>, TokenFault> {
        if self.at(pointer).is_none() {
            return Ok(None);
        }
        let text = self.text(pointer)?;
        let is_short = text.len() <= MAX_NAME && !text.contains(char::is_control);
        is_short.then(|| Some(text.to_owned())).ok_or_else(|| missing(pointer))
    }

    /// Returns the party that acts for the subject.
    pub(super) fn actor(self) -> Result<Option<Object>, TokenFault> {
        match self.0.get("act") {
            None => Ok(None),
            Some(Value::Object(actor)) if is_recordable(actor) => Ok(Some(actor.clone())),
            Some(_) => Err(missing("/act")),
        }
    }

    /// Returns the texts of a claim: a list, or one text with spaces between them.
    pub(super) fn texts(self, pointer: &str) -> Vec<&'a str> {
        match self.at(pointer) {
            Some(Value::String(text)) => text.split(' ').filter(|name| !name.is_empty()).collect(),
            Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// Refuses a token for others. `aud` is a text or a list of texts.
    pub(super) fn check_audience(self, accepted: &[String]) -> Result<(), TokenFault> {
        let is_accepted = |value: &Value| accepted.iter().any(|audience| value == audience.as_str());
        let is_for_us = match self.0.get("aud") {
            Some(Value::Array(list)) => list.iter().any(is_accepted),
            Some(value @ Value::String(_)) => is_accepted(value),
            _ => return Err(missing("/aud")),
        };
        if is_for_us { Ok(()) } else { Err(TokenFault::Audience) }
    }

    /// Reads `exp`, `iat` and `nbf`, and compares them with the time.
    pub(super) fn check_times(
        self,
        now: Timestamp,
        leeway: Duration,
        max_lifetime: Duration,
    ) -> Result<Times, TokenFault> {
        let needed = |name: &str| self.time(name)?.ok_or_else(|| missing(name));
        let (issued_at, expires_at) = (needed("/iat")?, needed("/exp")?);
        let not_before = self.time("/nbf")?;
        if issued_at > now + leeway || not_before.is_some_and(|time| time > now + leeway) {
            return Err(TokenFault::NotYetValid);
        }
        if expires_at <= now - leeway {
            return Err(TokenFault::Expired);
        }
        let lifetime = expires_at - issued_at;
        if lifetime <= TimeDelta::zero() {
            return Err(missing("/exp"));
        }
        if lifetime > TimeDelta::from_std(max_lifetime).unwrap_or(TimeDelta::MAX) {
            return Err(TokenFault::Lifetime);
        }
        Ok(Times { issued_at, expires_at })
    }

    /// Returns a time, which is a number of seconds since 1970. A text is no time.
    fn time(self, pointer: &str) -> Result<Option<Timestamp>, TokenFault> {
        let Some(value) = self.at(pointer) else {
            return Ok(None);
        };
        let since = value
            .as_f64()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let since = since.and_then(|since| TimeDelta::from_std(since).ok());
        let time = since.and_then(|since| DateTime::UNIX_EPOCH.checked_add_signed(since));
        time.map(Some).ok_or_else(|| missing(pointer))
    }
}

/// Returns whether an actor has a subject, and its chain is short.
fn is_recordable(actor: &Object) -> bool {
    let has_subject = actor.get("sub").is_some_and(Value::is_string);
    let json = serde_json::to_string(actor).unwrap_or_default();
    // Not every store can hold a NUL.
    has_subject && json.len() <= MAX_ACTOR && !json.contains("\\u0000")
}

/// Makes the fault of a claim, which is named as in the token.
pub(super) fn missing(pointer: &str) -> TokenFault {
    TokenFault::Claim(pointer.trim_start_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> &Object {
        value.as_object().unwrap()
    }

    #[test]
    fn times_are_numbers_and_within_bounds() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let (leeway, max) = (Duration::from_secs(30), Duration::from_hours(1));
        let at = |offset: i64| json!(1_800_000_000 + offset);
        let (invalid, early) = (
            |name: &str| Err(TokenFault::Claim(name.to_owned())),
            Err(TokenFault::NotYetValid),
        );
        for (iat, exp, nbf, expected) in [
            (at(-60), at(60), Value::Null, invalid("nbf")),
            (at(-60), at(60), at(-60), Ok(())),
            (at(29), at(60), at(29), Ok(())),
            (at(31), at(60), at(0), early.clone()),
            (at(0), at(60), at(31), early),
            (at(-60), at(-29), at(-60), Ok(())),
            (at(-60), at(-30), at(-60), Err(TokenFault::Expired)),
            (at(0), at(3_600), at(0), Ok(())),
            (at(0), at(3_601), at(0), Err(TokenFault::Lifetime)),
            (at(0), at(0), at(0), invalid("exp")),
            (json!(1_800_000_000.5), json!(1_800_000_001.5), at(0), Ok(())),
            (json!("1800000000"), at(60), at(0), invalid("iat")),
            (at(0), json!("1800000060"), at(0), invalid("exp")),
            (at(0), json!(1e300), at(0), invalid("exp")),
            (at(0), json!(-1), at(0), invalid("exp")),
            (at(0), at(60), json!("0"), invalid("nbf")),
            (Value::Null, at(60), at(0), invalid("iat")),
            (at(0), Value::Null, at(0), invalid("exp")),
        ] {
            let claims = json!({"iat": iat, "exp": exp, "nbf": nbf});
            let checked = Claims(object(&claims)).check_times(now, leeway, max);
            assert_eq!(checked.map(|_| ()), expected, "{claims}");
        }
        let without = json!({"iat": at(0), "exp": at(60)});
        Claims(object(&without)).check_times(now, leeway, max).unwrap();
    }

    #[test]
    fn the_audience_is_a_text_or_a_list() {
        let accepted = ["a".to_owned(), "b".to_owned()];
        for (aud, expected) in [
            (json!("a"), Ok(())),
            (json!(["x", "b"]), Ok(())),
            (json!("x"), Err(TokenFault::Audience)),
            (json!("a b"), Err(TokenFault::Audience)),
            (json!([]), Err(TokenFault::Audience)),
            (json!([["a"]]), Err(TokenFault::Audience)),
            (json!({"a": "a"}), Err(TokenFault::Claim("aud".to_owned()))),
            (Value::Null, Err(TokenFault::Claim("aud".to_owned()))),
        ] {
            let claims = json!({"aud": aud});
            assert_eq!(Claims(object(&claims)).check_audience(&accepted), expected, "{claims}");
        }
    }

    #[test]
    fn claims_are_found_by_their_pointers() {
        let claims = json!({"https://x/tenant": "acme", "a": {"b": ["c"]}, "s": "x  y", "l": ["x", 1]});
        let claims = Claims(object(&claims));
        assert_eq!(claims.text("/https:~1~1x~1tenant"), Ok("acme"));
        assert_eq!(claims.texts("/a/b"), ["c"]);
        assert_eq!(claims.texts("/s"), ["x", "y"]);
        assert_eq!(claims.texts("/l"), ["x"]);
        assert_eq!(claims.text("/a/x").unwrap_err(), TokenFault::Claim("a/x".to_owned()));
        for pointer in ["", "a", "/", "/a/b/0"] {
            assert!(claims.text(pointer).is_err(), "{pointer}");
        }
    }
}
