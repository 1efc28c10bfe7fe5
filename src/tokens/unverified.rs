//! The parts of a token, before anything in it is trusted (RFC 7515, RFC 7519).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::fault::TokenFault;
use values::json::{Object, Value, present};

/// The most bytes of a token.
const MAX_BYTES: usize = 8 << 10;

/// A token whose signature is not checked.
#[derive(Debug)]
pub(super) struct Unverified<'a> {
    pub(super) header: Header,
    pub(super) claims: Object,
    /// The text that is signed.
    pub(super) message: &'a [u8],
    pub(super) signature: Vec<u8>,
}

/// What is read of a header. Addresses and keys in it (`jku`, `x5u`, `jwk`) are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub(super) alg: String,
    #[serde(default)]
    pub(super) kid: Option<String>,
    #[serde(default)]
    pub(super) typ: Option<String>,
    /// Extensions that the reader must understand. The service understands none.
    #[serde(default, deserialize_with = "present")]
    crit: Option<Value>,
}

impl<'a> Unverified<'a> {
    /// Takes a token apart. Its size is checked before anything is decoded.
    pub(super) fn read(token: &'a str) -> Result<Self, TokenFault> {
        if token.len() > MAX_BYTES {
            return Err(TokenFault::Malformed("it has more than 8 KiB"));
        }
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenFault::Malformed("it is no signed JWT"));
        };
        let message = &token.as_bytes()[..header.len() + 1 + claims.len()];
        let header: Header = decoded(header)
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or(TokenFault::Malformed("its header can't be read"))?;
        if header.crit.is_some() {
            return Err(TokenFault::Malformed("its header has `crit`"));
        }
        let claims = decoded(claims).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Self {
            header,
            claims: claims.ok_or(TokenFault::Malformed("its claims can't be read"))?,
            message,
            signature: decoded(signature).ok_or(TokenFault::Malformed("its signature can't be read"))?,
        })
    }
}

fn decoded(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

impl Header {
    /// Returns whether the type is the expected one. It may lack the prefix `application/`.
    pub(super) fn has_type(&self, expected: &str) -> bool {
        let short = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.strip_prefix("application/").map(str::to_owned).unwrap_or(name)
        };
        self.typ.as_deref().is_some_and(|typ| short(typ) == short(expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str, claims: &str) -> String {
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("{header}.{claims}.c2ln")
    }

    #[test]
    fn a_token_has_three_parts() {
        let whole = token(
            r#"{"alg":"ES256","kid":"k","typ":"at+jwt","jku":"https://evil"}"#,
            r#"{"iss":"i"}"#,
        );
        let read = Unverified::read(&whole).unwrap();
        assert_eq!(read.message, whole.strip_suffix(".c2ln").unwrap().as_bytes());
        assert_eq!(
            (read.header.kid.as_deref(), read.signature.as_slice()),
            (Some("k"), &b"sig"[..])
        );
        assert!(read.header.has_type("application/AT+JWT") && !read.header.has_type("JWT"));
        for wrong in [
            String::new(),
            "..".to_owned(),
            format!("{whole}.x"),
            whole.replacen('.', "", 1),
            format!("{whole}="),
            token(r#"{"alg":"ES256","crit":["b64"]}"#, "{}"),
            token(r#"{"alg":"ES256","crit":null}"#, "{}"),
            token(r#"{"alg":"ES256"}"#, "[]"),
            token(r#"{"kid":"k"}"#, "{}"),
            token("{}", "{}"),
            "a".repeat(MAX_BYTES + 1),
        ] {
            let fault = Unverified::read(&wrong).unwrap_err();
            assert!(matches!(fault, TokenFault::Malformed(_)), "{wrong}");
        }
    }
}
