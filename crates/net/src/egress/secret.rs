//! Secrets that the proxy puts into requests, so that commands only have placeholders.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use url::{Position, Url};

use values::secret_forms::{MIN_FORM, encoded_forms};

const BASIC: &str = "Basic ";

/// A secret of one host. It is sent to this host alone, and only encrypted.
#[derive(Debug, Clone)]
pub struct HostSecret {
    variable: String,
    host: String,
    port: u16,
    header: HeaderName,
    prefix: String,
    secret: SecretString,
}

/// A secret that can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    /// The host is not a name or an address, alone or with a port.
    #[error("the host must be a name or an address, with a port if it is not 443")]
    Host,
    /// The header does not exist, or belongs to the connection.
    #[error("there is no such header")]
    Header,
    /// The secret can't be sent in a header.
    #[error("the secret, or what comes before it, can't be sent in a header")]
    Value,
    /// The secret is shorter than 6 bytes.
    #[error("the secret has less than {MIN_FORM} bytes")]
    TooShort,
}

impl HostSecret {
    /// Makes the secret of a host, such as `api.example.org` or `api.example.org:8443`. A command
    /// finds the placeholder in the variable.
    pub fn new(
        variable: &str,
        host: &str,
        (header, prefix): (&str, &str),
        secret: SecretString,
    ) -> Result<Self, SecretFault> {
        let url = Url::parse(&format!("https://{host}/")).map_err(|_| SecretFault::Host)?;
        let is_host = !host.contains(['/', '?', '#', '@', '*', '\\']) && &url[Position::BeforePath..] == "/";
        let host = url.host_str().filter(|_| is_host).ok_or(SecretFault::Host)?.to_owned();
        let header: HeaderName = header.parse().map_err(|_| SecretFault::Header)?;
        if [
            hyper::header::HOST,
            hyper::header::CONTENT_LENGTH,
            hyper::header::CONNECTION,
        ]
        .contains(&header)
        {
            return Err(SecretFault::Header);
        }
        if secret.expose_secret().len() < MIN_FORM {
            return Err(SecretFault::TooShort);
        }
        let made = Self {
            variable: variable.to_owned(),
            host,
            port: url.port_or_known_default().unwrap_or(443),
            header,
            prefix: prefix.to_owned(),
            secret,
        };
        let value = format!("{prefix}{}", made.secret.expose_secret());
        HeaderValue::from_str(&value).map_err(|_| SecretFault::Value)?;
        Ok(made)
    }

    /// Returns the variable of the command that holds the placeholder.
    pub fn variable(&self) -> &str {
        &self.variable
    }

    /// Returns the placeholder that a command has instead of the secret.
    pub fn placeholder(&self) -> String {
        format!("placeholder-of-{}", self.variable)
    }

    /// Returns the host without its port.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn is_for(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    /// Puts the secret into the headers of a request to its host: in place of the placeholder, or
    /// as a new header if there is none of the name. A value without the placeholder stays.
    pub(super) fn apply(&self, headers: &mut HeaderMap) {
        let values: Vec<HeaderValue> = headers.get_all(&self.header).iter().cloned().collect();
        if values.is_empty() {
            if let Some(value) = sensitive(&format!("{}{}", self.prefix, self.secret.expose_secret())) {
                headers.insert(&self.header, value);
            }
            return;
        }
        headers.remove(&self.header);
        for value in values {
            let replaced = value.to_str().ok().and_then(|text| self.replaced(text));
            let replaced = replaced.and_then(|text| sensitive(&text));
            headers.append(&self.header, replaced.unwrap_or(value));
        }
    }

    /// Replaces the placeholder, also in the user and password of `Basic`, which are encoded.
    fn replaced(&self, value: &str) -> Option<String> {
        let placeholder = self.placeholder();
        if value.contains(&placeholder) {
            return Some(value.replace(&placeholder, self.secret.expose_secret()));
        }
        let (scheme, credentials) = value.split_at_checked(BASIC.len())?;
        if !scheme.eq_ignore_ascii_case(BASIC) {
            return None;
        }
        let decoded = String::from_utf8(STANDARD.decode(credentials.trim()).ok()?).ok()?;
        let replaced = decoded.replace(&placeholder, self.secret.expose_secret());
        (replaced != decoded).then(|| format!("{BASIC}{}", STANDARD.encode(replaced)))
    }

    /// Returns the forms that no response may have, the longest first.
    pub(super) fn forms(&self) -> impl Iterator<Item = SecretSlice<u8>> + use<> {
        let forms = encoded_forms(self.secret.expose_secret());
        forms.into_iter().map(|form| SecretSlice::new(form.into_bytes().into()))
    }
}

fn sensitive(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(host: &str, header: &str) -> Result<HostSecret, SecretFault> {
        HostSecret::new("TOKEN", host, (header, "Bearer "), "hunter2".into())
    }

    #[test]
    fn a_secret_replaces_its_placeholder_and_nothing_else() {
        let secret = secret("api.example.org", "authorization").unwrap();
        let encoded = |text: &str| format!("Basic {}", STANDARD.encode(text));
        for (sent, expected) in [
            (None, "Bearer hunter2".to_owned()),
            (
                Some("token placeholder-of-TOKEN".to_owned()),
                "token hunter2".to_owned(),
            ),
            (Some(encoded("me:placeholder-of-TOKEN")), encoded("me:hunter2")),
            (Some(encoded("me:other")), encoded("me:other")),
            (Some("Basic ???".to_owned()), "Basic ???".to_owned()),
            (Some("mine".to_owned()), "mine".to_owned()),
            (Some(String::new()), String::new()),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(sent) = &sent {
                headers.insert("authorization", sent.parse().unwrap());
            }
            secret.apply(&mut headers);
            assert_eq!(headers["authorization"], expected, "{sent:?}");
            assert_eq!(headers.len(), 1);
        }
        assert!(!format!("{secret:?}").contains("hunter2"));
    }

    #[test]
    fn what_can_not_be_sent_is_refused() {
        for (host, expected) in [
            ("EXAMPLE.org", Ok(("example.org", 443))),
            ("example.org:8443", Ok(("example.org", 8443))),
            ("[::1]:1", Ok(("[::1]", 1))),
            ("*.example.org", Err(SecretFault::Host)),
            ("https://example.org", Err(SecretFault::Host)),
            ("user@example.org", Err(SecretFault::Host)),
            ("", Err(SecretFault::Host)),
        ] {
            let made = secret(host, "x-key");
            let made = made
                .as_ref()
                .map(|made| (made.host(), made.port))
                .map_err(|fault| *fault);
            assert_eq!(made, expected, "{host}");
        }
        assert_eq!(secret("a.org", "two words").unwrap_err(), SecretFault::Header);
        assert_eq!(secret("a.org", "host").unwrap_err(), SecretFault::Header);
        let with = |secret: &str| HostSecret::new("T", "a.org", ("x", ""), secret.into()).unwrap_err();
        assert_eq!(with("abc"), SecretFault::TooShort);
        assert_eq!(with("two\nlines"), SecretFault::Value);
    }
}
