//! Checks a URL, as far as possible before its name is resolved.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;
use url::Host;

use super::rules::AddressRules;

/// A URL that a client may send to. Only its host is shown, since its path and query may hold
/// secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: String,
}

/// Why a URL is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// The text is not an absolute URL with a host.
    #[error("it is no URL such as https://example.org/path")]
    NotUrl,
    /// Its scheme is neither `http` nor `https`.
    #[error("its scheme is neither https nor http")]
    Scheme,
    /// The scheme is not encrypted.
    #[error("its scheme must be https (the operator can allow http with {key})")]
    NotEncrypted {
        /// The key that permits it.
        key: &'static str,
    },
    /// The URL contains a user name or a password.
    #[error("it holds credentials")]
    Credentials,
    /// The operator has not allowed the host, or has denied it.
    #[error("its host is not allowed")]
    Host,
    /// The port is not allowed.
    #[error("its port {port} is not allowed")]
    Port { port: u16 },
    /// The address is not public.
    #[error("its address is not public (the operator can allow it with {key})")]
    NotPublic {
        /// The key that permits it.
        key: &'static str,
    },
}

impl Target {
    pub(super) fn parse(text: &str, rules: &AddressRules) -> Result<Self, UrlFault> {
        let url = Url::parse(text).map_err(|_| UrlFault::NotUrl)?;
        Self::check(url, rules)
    }

    /// Checks a parsed URL, for example the URL of a redirect.
    pub(super) fn check(url: Url, rules: &AddressRules) -> Result<Self, UrlFault> {
        match url.scheme() {
            "https" => (),
            "http" if rules.allow_http => (),
            "http" => {
                return Err(UrlFault::NotEncrypted {
                    key: rules.keys.allow_http,
                });
            }
            _ => return Err(UrlFault::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlFault::Credentials);
        }
        // The resolver never sees an IP address in the URL, so it is checked here. The URL parser
        // has normalised notations such as 0x7f.1.
        let literal = match url.host().ok_or(UrlFault::NotUrl)? {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
        };
        if literal.is_some_and(|address| !rules.permits_address(address)) {
            return Err(UrlFault::NotPublic {
                key: rules.keys.private,
            });
        }
        let host = url.host_str().ok_or(UrlFault::NotUrl)?.to_owned();
        if !rules.permits_host(&host) {
            return Err(UrlFault::Host);
        }
        let port = url.port_or_known_default().ok_or(UrlFault::NotUrl)?;
        if !rules.permits_port(port) {
            return Err(UrlFault::Port { port });
        }
        Ok(Self { url, host })
    }

    /// Returns the name or address of the host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the whole URL, which may contain secrets.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns whether both have the same scheme, host and port.
    pub(super) fn is_same_origin(&self, other: &Self) -> bool {
        let origin = |target: &Self| {
            let url = &target.url;
            (
                url.scheme().to_owned(),
                target.host.clone(),
                url.port_or_known_default(),
            )
        };
        origin(self) == origin(other)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.host)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::rules::{PrivateAddresses, RuleKeys};
    use super::*;

    const KEYS: RuleKeys = RuleKeys {
        allow_http: "http.key",
        private: "private.key",
    };
    const NOT_PUBLIC: UrlFault = UrlFault::NotPublic { key: "private.key" };

    #[test]
    fn urls_are_checked_before_they_are_resolved() {
        let rules = AddressRules::public(KEYS);
        for (url, expected) in [
            ("https://example.org/a?token=1", Ok("example.org")),
            ("https://example.org:8443/", Ok("example.org")),
            ("https://1.1.1.1", Ok("1.1.1.1")),
            ("https://[2606:4700:4700::1111]:8443/", Ok("[2606:4700:4700::1111]")),
            // The addresses of a name are checked later, when it is resolved.
            ("https://localhost/", Ok("localhost")),
            ("https://example.org\\@127.0.0.1/", Ok("example.org")),
            ("https://example.org#@127.0.0.1/", Ok("example.org")),
            ("", Err(UrlFault::NotUrl)),
            ("example.org/hooks", Err(UrlFault::NotUrl)),
            ("https://", Err(UrlFault::NotUrl)),
            ("https://[fe80::1%25eth0]/", Err(UrlFault::NotUrl)),
            ("https://1.2.3.4.5/", Err(UrlFault::NotUrl)),
            ("https://256.0.0.1/", Err(UrlFault::NotUrl)),
            ("http://example.org/", Err(UrlFault::NotEncrypted { key: "http.key" })),
            ("ftp://example.org/", Err(UrlFault::Scheme)),
            ("gopher://example.org/", Err(UrlFault::Scheme)),
            ("file:///etc/passwd", Err(UrlFault::Scheme)),
            ("data:text/plain,a", Err(UrlFault::Scheme)),
            ("https://user@example.org/", Err(UrlFault::Credentials)),
            ("https://:pass@example.org/", Err(UrlFault::Credentials)),
            ("https://example.org@127.0.0.1/", Err(UrlFault::Credentials)),
            ("https://127.0.0.1/", Err(NOT_PUBLIC)),
            ("https://2130706433/", Err(NOT_PUBLIC)),
            ("https://0x7f000001/", Err(NOT_PUBLIC)),
            ("https://017700000001/", Err(NOT_PUBLIC)),
            ("https://0x7f.1/", Err(NOT_PUBLIC)),
            ("https://127.1/", Err(NOT_PUBLIC)),
            ("https://0177.0.0.1/", Err(NOT_PUBLIC)),
            ("https://127.0.0.1./", Err(NOT_PUBLIC)),
            ("https://%31%32%37.0.0.1/", Err(NOT_PUBLIC)),
            ("https://１２７.０.０.１/", Err(NOT_PUBLIC)),
            ("https://127。0。0。1/", Err(NOT_PUBLIC)),
            ("https:127.0.0.1/", Err(NOT_PUBLIC)),
            ("https:\\\\127.0.0.1/", Err(NOT_PUBLIC)),
            ("https://127.0.0\t.1/", Err(NOT_PUBLIC)),
            ("https://0/", Err(NOT_PUBLIC)),
            ("https://0.0.0.0/", Err(NOT_PUBLIC)),
            ("https://10.0.0.1/", Err(NOT_PUBLIC)),
            ("https://169.254.169.254/latest", Err(NOT_PUBLIC)),
            ("https://2852039166/latest", Err(NOT_PUBLIC)),
            ("https://224.0.0.1/", Err(NOT_PUBLIC)),
            ("https://[::]/", Err(NOT_PUBLIC)),
            ("https://[::1]/", Err(NOT_PUBLIC)),
            ("https://[::ffff:127.0.0.1]/", Err(NOT_PUBLIC)),
            ("https://[::ffff:7f00:1]/", Err(NOT_PUBLIC)),
            ("https://[::ffff:1.1.1.1]/", Err(NOT_PUBLIC)),
            ("https://[64:ff9b::a9fe:a9fe]/", Err(NOT_PUBLIC)),
            ("https://[2002:7f00:1::]/", Err(NOT_PUBLIC)),
            ("https://[fd00:ec2::254]/", Err(NOT_PUBLIC)),
            ("https://[fe80::1]/", Err(NOT_PUBLIC)),
            ("https://[ff02::1]/", Err(NOT_PUBLIC)),
            ("https://example.org:25/", Err(UrlFault::Port { port: 25 })),
            ("https://example.org:6667/", Err(UrlFault::Port { port: 6667 })),
            ("https://example.org:0/", Err(UrlFault::Port { port: 0 })),
        ] {
            let parsed = Target::parse(url, &rules);
            assert_eq!(parsed.as_ref().map(Target::host), expected.as_ref().copied(), "{url}");
            let shown = format!("{parsed:?}");
            assert!(!shown.contains("token"), "{shown}");
        }
    }

    #[test]
    fn configuration_allows_what_is_refused() {
        let rules = AddressRules {
            private: PrivateAddresses::All,
            allow_http: true,
            ..AddressRules::public(KEYS)
        };
        for url in ["http://127.0.0.1:1234/", "https://[::1]/", "http://10.0.0.1"] {
            assert!(Target::parse(url, &rules).is_ok(), "{url}");
        }
        assert_eq!(Target::parse("ftp://example.org/", &rules), Err(UrlFault::Scheme));

        let rules = AddressRules {
            private: PrivateAddresses::In(vec!["10.1.0.0/16".parse().unwrap()]),
            ..AddressRules::public(KEYS)
        };
        assert!(Target::parse("https://10.1.2.3/", &rules).is_ok());
        assert_eq!(Target::parse("https://10.2.2.3/", &rules), Err(NOT_PUBLIC));
        assert_eq!(Target::parse("https://[::ffff:10.1.2.3]/", &rules), Err(NOT_PUBLIC));
    }

    #[test]
    fn configuration_refuses_hosts_and_ports() {
        let rules = AddressRules {
            allow_hosts: vec!["example.org".parse().unwrap(), "*.example.org".parse().unwrap()],
            deny_hosts: vec!["admin.example.org".parse().unwrap()],
            ports: BTreeSet::from([443]),
            ..AddressRules::public(KEYS)
        };
        for (url, expected) in [
            ("https://EXAMPLE.org/", None),
            ("https://www.example.org/", None),
            ("https://example.org:443/", None),
            ("https://admin.example.org/", Some(UrlFault::Host)),
            ("https://ADMIN.example.org./", Some(UrlFault::Host)),
            ("https://example.org.evil.net/", Some(UrlFault::Host)),
            ("https://1.1.1.1/", Some(UrlFault::Host)),
            ("https://example.org:8443/", Some(UrlFault::Port { port: 8443 })),
        ] {
            assert_eq!(Target::parse(url, &rules).err(), expected, "{url}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let rules = AddressRules {
            allow_http: true,
            ..AddressRules::public(KEYS)
        };
        let target = |url: &str| Target::parse(url, &rules).unwrap();
        let base = target("https://example.org/a");
        for (url, expected) in [
            ("https://EXAMPLE.org:443/b?c", true),
            ("http://example.org/a", false),
            ("https://example.org:8443/a", false),
            ("https://www.example.org/a", false),
        ] {
            assert_eq!(base.is_same_origin(&target(url)), expected, "{url}");
        }
    }
}
