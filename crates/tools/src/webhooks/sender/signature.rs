//! Webhook signatures of the Standard Webhooks specification 1.0: HMAC-SHA256 over id, time and
//! body. No IO.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use values::clock::Timestamp;

/// The prefix of every secret.
const PREFIX: &str = "whsec_";
/// The allowed length of a secret in bytes, by the specification.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// The keys that sign messages. A receiver needs one of them to verify a message. To rotate a
/// secret without a gap, add the new one, give it to the receivers, and remove the old one.
#[derive(Clone)]
pub struct SigningKeys(Vec<Hmac<Sha256>>);

/// The error of a text without valid signing secrets. It does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a signing secret is whsec_ and the base64 of 24 to 64 bytes; several are separated by blanks")]
pub struct SigningKeyError;

impl SigningKeys {
    /// Reads one or more secrets, separated by blanks or line ends.
    pub fn parse(text: &str) -> Result<Self, SigningKeyError> {
        let keys: Vec<_> = text.split_whitespace().map(parse_one).collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(SigningKeyError);
        }
        Ok(Self(keys))
    }

    /// Signs a message; returns the value of `webhook-signature`, one signature for each key.
    pub fn sign(&self, id: &str, timestamp: Timestamp, body: &[u8]) -> String {
        let head = format!("{id}.{}.", timestamp.timestamp());
        let signatures = self.0.iter().map(|key| {
            let code = key.clone().chain_update(&head).chain_update(body).finalize();
            format!("v1,{}", STANDARD.encode(code.into_bytes()))
        });
        signatures.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKeys({} of them)", self.0.len())
    }
}

fn parse_one(text: &str) -> Result<Hmac<Sha256>, SigningKeyError> {
    let encoded = text.strip_prefix(PREFIX).ok_or(SigningKeyError)?;
    let secret = STANDARD.decode(encoded).map_err(|_| SigningKeyError)?;
    if !LENGTHS.contains(&secret.len()) {
        return Err(SigningKeyError);
    }
    Hmac::new_from_slice(&secret).map_err(|_| SigningKeyError)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn signatures_are_those_of_the_published_test_vector() {
        let at = DateTime::from_timestamp(1_614_265_330, 999_000_000).unwrap();
        let sign = |secrets: &str| {
            let keys = SigningKeys::parse(secrets).unwrap();
            keys.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, br#"{"test": 2432232314}"#)
        };
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(sign(SECRET), signature);
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let both = sign(&format!("{other}\n{SECRET}\n"));
        assert_eq!(both, format!("{} {signature}", sign(other)));
    }

    #[test]
    fn a_bad_secret_is_refused_and_not_shown() {
        let with_length = |length: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7; length]));
        for good in [with_length(24), with_length(64), format!("{SECRET} {SECRET}")] {
            let keys = SigningKeys::parse(&good).unwrap();
            assert!(!format!("{keys:?}").contains(PREFIX));
        }
        for bad in [
            "",
            " \n",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
            "whsec_****************************MfKQ",
            &with_length(23),
            &with_length(65),
            &format!("{SECRET} hunter2"),
        ] {
            let error = SigningKeys::parse(bad).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{bad:?}");
        }
    }
}
