//! Checks the addresses of webhooks, as far as possible before their names are resolved.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use super::SenderSettings;
use super::public_address::is_public;

/// An address that a sender may send to. Only its host is shown, since its path and query may hold
/// secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub(super) url: Url,
    host: String,
}

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointFault {
    /// It is not an absolute URL with a host.
    #[error("it is no URL such as https://example.org/hooks")]
    NotUrl,
    /// Its scheme is neither `http` nor `https`.
    #[error("its scheme is neither https nor http")]
    Scheme,
    /// It is not encrypted.
    #[error("its scheme must be https (the operator can allow http with webhooks.allow_http)")]
    NotEncrypted,
    /// It contains a user name or a password.
    #[error("it holds credentials")]
    Credentials,
    /// It names an address that is not public.
    #[error("its address is not public (the operator can allow it with webhooks.allow_private_addresses)")]
    NotPublic,
}

impl Endpoint {
    pub(super) fn parse(text: &str, settings: &SenderSettings) -> Result<Self, EndpointFault> {
        let url = Url::parse(text).map_err(|_| EndpointFault::NotUrl)?;
        match url.scheme() {
            "https" => (),
            "http" if settings.allow_http => (),
            "http" => return Err(EndpointFault::NotEncrypted),
            _ => return Err(EndpointFault::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointFault::Credentials);
        }
        let host = url.host_str().ok_or(EndpointFault::NotUrl)?;
        // The resolver never sees an IP address in the URL, so it is checked here. The URL parser
        // has normalised notations such as 0x7f.1.
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let is_refused = literal.is_ok_and(|address| !is_public(address));
        if is_refused && !settings.allow_private_addresses {
            return Err(EndpointFault::NotPublic);
        }
        let host = host.to_owned();
        Ok(Self { url, host })
    }

    /// Returns the name or address of the host.
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_before_they_are_resolved() {
        let settings = SenderSettings::default();
        for (url, expected) in [
            ("https://example.org/a?token=1", Ok("example.org")),
            ("https://1.1.1.1", Ok("1.1.1.1")),
            ("https://[2606:4700:4700::1111]:8443/", Ok("[2606:4700:4700::1111]")),
            // The addresses of a name are checked later, when it is resolved.
            ("https://localhost/", Ok("localhost")),
            ("", Err(EndpointFault::NotUrl)),
            ("example.org/hooks", Err(EndpointFault::NotUrl)),
            ("https://", Err(EndpointFault::NotUrl)),
            ("http://example.org/", Err(EndpointFault::NotEncrypted)),
            ("ftp://example.org/", Err(EndpointFault::Scheme)),
            ("file:///etc/passwd", Err(EndpointFault::Scheme)),
            ("https://user@example.org/", Err(EndpointFault::Credentials)),
            ("https://:pass@example.org/", Err(EndpointFault::Credentials)),
            ("https://127.0.0.1/", Err(EndpointFault::NotPublic)),
            ("https://2130706433/", Err(EndpointFault::NotPublic)),
            ("https://0x7f.1/", Err(EndpointFault::NotPublic)),
            ("https://0177.0.0.1/", Err(EndpointFault::NotPublic)),
            ("https://127.0.0.1./", Err(EndpointFault::NotPublic)),
            ("https://169.254.169.254/latest", Err(EndpointFault::NotPublic)),
            ("https://[::1]/", Err(EndpointFault::NotPublic)),
            ("https://[::ffff:1.1.1.1]/", Err(EndpointFault::NotPublic)),
            ("https://[fe80::1]/", Err(EndpointFault::NotPublic)),
        ] {
            let parsed = Endpoint::parse(url, &settings);
            assert_eq!(parsed.as_ref().map(Endpoint::host), expected.as_ref().copied(), "{url}");
            let shown = format!("{parsed:?}");
            assert!(!shown.contains("token"), "{shown}");
        }
    }

    #[test]
    fn configuration_allows_what_is_refused() {
        let settings = SenderSettings {
            allow_private_addresses: true,
            allow_http: true,
            ..SenderSettings::default()
        };
        for url in ["http://127.0.0.1:1/", "https://[::1]/", "http://10.0.0.1"] {
            assert!(Endpoint::parse(url, &settings).is_ok(), "{url}");
        }
        assert_eq!(
            Endpoint::parse("ftp://example.org/", &settings),
            Err(EndpointFault::Scheme)
        );
    }
}
