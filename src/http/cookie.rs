//! The cookie of a session of the console, and the requests that may use it.
//!
//! A browser adds the cookie by itself, so a request with it may come from any page that shares the
//! site of the service: another port of this machine, or a neighbour in the domain. Browsers say
//! which page sends a request, and only the pages of the console count.
//!
//! Cookies ignore ports. So the name of the cookie has the port of the header `Host`, if there is
//! one, and services on several ports of a host have a cookie each.

use axum::http::{HeaderMap, Method, header};

use super::codes::ProblemCode;
use super::host::{host_port, is_loopback_host, is_own_origin};
use super::problem::Problem;
use crate::api_key::hash_session;
use values::session::Hash;

/// The header that a write of the console has. A page of another origin can add it only if that
/// origin is configured (`cross_origin.rs`), and its browser still sends no cookie.
const CONSOLE_HEADER: &str = "x-console";
/// The header by which a browser says where the page of a request is from. Browsers send it over
/// HTTPS, and to this machine.
const FETCH_SITE: &str = "sec-fetch-site";

/// The way from the browser to the service, which decides the form of the cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Https,
    /// Plain HTTP on this machine.
    Loopback,
}

impl Transport {
    /// Returns the way of a login. Refuses plain HTTP beyond this machine: others could read the
    /// secret.
    pub(super) fn of_login(headers: &HeaderMap) -> Result<Self, Problem> {
        let origin = headers
            .get(header::ORIGIN)
            .map(|origin| origin.as_bytes().starts_with(b"https://"));
        match (origin, is_loopback_host(headers)) {
            (Some(true), _) | (None, false) => Ok(Self::Https),
            (Some(false) | None, true) => Ok(Self::Loopback),
            (Some(false), false) => {
                let words =
                    "beyond this machine, the console needs HTTPS: set `http.tls`, or use a proxy that ends TLS";
                Err(Problem::new(ProblemCode::OriginNotAllowed, words))
            }
        }
    }

    /// Returns the name of the cookie for the host and the port of a request. Browsers give a
    /// cookie with the prefix back to the same host only, and take it from no other one. Over plain
    /// HTTP, they refuse it.
    fn cookie_name(self, headers: &HeaderMap) -> String {
        let name = match self {
            Self::Https => "__Host-ark",
            Self::Loopback => "ark",
        };
        host_port(headers).map_or_else(|| name.to_owned(), |port| format!("{name}-{port}"))
    }

    /// Returns the value of `Set-Cookie` with a secret that the browser forgets after so many
    /// seconds.
    pub(super) fn set_cookie(self, headers: &HeaderMap, secret: &str, max_age: u64) -> String {
        let name = self.cookie_name(headers);
        let secure = match self {
            Self::Https => "Secure; ",
            Self::Loopback => "",
        };
        format!("{name}={secret}; Path=/; Max-Age={max_age}; {secure}HttpOnly; SameSite=Strict")
    }
}

/// Returns the values of `Set-Cookie` that make a browser forget the cookie.
pub(super) fn forget(headers: &HeaderMap) -> [String; 2] {
    [Transport::Https, Transport::Loopback].map(|transport| transport.set_cookie(headers, "", 0))
}

/// Returns the hash of the secret in the cookie, if there is one. Another host of the domain can
/// set a cookie without the prefix, so that one counts on this machine only.
pub(super) fn session_hash(headers: &HeaderMap) -> Option<Hash> {
    let of = |transport: Transport| {
        let name = transport.cookie_name(headers);
        let secret = cookies(headers).find_map(|(known, value)| (known == name).then_some(value));
        secret.and_then(hash_session)
    };
    of(Transport::Https).or_else(|| is_loopback_host(headers).then(|| of(Transport::Loopback)).flatten())
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let texts = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    texts
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// Refuses a request unless a page of the console sends it, and a write unless it says so.
pub(super) fn check_own_page(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |words: &str| Err(Problem::new(ProblemCode::OriginNotAllowed, words));
    let is_own = if headers.contains_key(FETCH_SITE) {
        all(headers, FETCH_SITE, |site| site == "same-origin")
    } else {
        all(headers, "origin", |origin| is_own_origin(origin, headers))
    };
    if !is_own {
        return refuse(
            "only pages of the console do this, from which browsers send `Sec-Fetch-Site: same-origin`, or an `Origin` \
             that is the host",
        );
    }
    if *method != Method::GET && *method != Method::HEAD && !all(headers, CONSOLE_HEADER, |value| value == "1") {
        return refuse("a write of the console needs the header `X-Console: 1`");
    }
    Ok(())
}

/// Returns whether a header is there and each of its values passes.
fn all(headers: &HeaderMap, name: &str, passes: impl Fn(&str) -> bool) -> bool {
    let mut values = headers.get_all(name).iter();
    headers.contains_key(name) && values.all(|value| value.to_str().is_ok_and(&passes))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(given: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn only_pages_of_the_console_pass_and_writes_are_marked() {
        let host = ("host", "agents.example");
        let (same, origin) = (("sec-fetch-site", "same-origin"), ("origin", "https://agents.example"));
        let (marked, foreign) = (("x-console", "1"), ("origin", "https://evil.example"));
        for (given, reads, writes) in [
            (&[host][..], false, false),
            (&[host, marked], false, false),
            (&[host, same], true, false),
            (&[host, same, marked], true, true),
            (&[host, same, ("x-console", "2")], true, false),
            (&[host, same, marked, ("x-console", "2")], true, false),
            (&[host, origin], true, false),
            (&[host, origin, marked], true, true),
            (&[host, foreign, marked], false, false),
            (&[host, origin, foreign, marked], false, false),
            (&[host, ("origin", "null"), marked], false, false),
            (&[host, ("sec-fetch-site", "same-site"), origin, marked], false, false),
            (&[host, ("sec-fetch-site", "cross-site"), marked], false, false),
            (&[host, ("sec-fetch-site", "none"), marked], false, false),
            (&[host, same, ("sec-fetch-site", "none"), marked], false, false),
        ] {
            let headers = headers(given);
            let passes = |method: Method| check_own_page(&method, &headers).is_ok();
            assert_eq!([passes(Method::GET), passes(Method::HEAD)], [reads; 2], "{given:?}");
            let methods = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
            assert_eq!(methods.map(passes), [writes; 4], "{given:?}");
        }
    }

    #[test]
    fn the_cookie_is_for_https_except_on_this_machine() {
        let https = ("origin", "https://agents.example");
        for (given, expected) in [
            (&[("host", "agents.example"), https][..], Some(Transport::Https)),
            (&[("host", "127.0.0.1:8080"), https], Some(Transport::Https)),
            (
                &[("host", "localhost:8080"), ("origin", "http://localhost:8080")],
                Some(Transport::Loopback),
            ),
            (&[("host", "[::1]:8080")], Some(Transport::Loopback)),
            (&[("host", "agents.example")], Some(Transport::Https)),
            (&[("host", "10.0.0.7:8080"), ("origin", "http://10.0.0.7:8080")], None),
        ] {
            assert_eq!(Transport::of_login(&headers(given)).ok(), expected, "{given:?}");
        }
        for (host, suffix) in [("agents.example", ""), ("localhost:8080", "-8080")] {
            let headers = headers(&[("host", host)]);
            let cookie = format!("__Host-ark{suffix}=s; Path=/; Max-Age=9; Secure; HttpOnly; SameSite=Strict");
            assert_eq!(Transport::Https.set_cookie(&headers, "s", 9), cookie);
            let cookie = format!("ark{suffix}=s; Path=/; Max-Age=9; HttpOnly; SameSite=Strict");
            assert_eq!(Transport::Loopback.set_cookie(&headers, "s", 9), cookie);
        }
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let (one, two) = ("1".repeat(64), "2".repeat(64));
        let (remote, local) = (("host", "agents.example"), ("host", "localhost"));
        let (remote_port, local_port) = (("host", "agents.example:8443"), ("host", "[::1]:8080"));
        let (secure, plain) = (format!("__Host-ark={one}"), format!("a=b; ark={two};c"));
        let (secure_port, plain_port) = (format!("__Host-ark-8443={one}"), format!("ark={one}; ark-8080={two}"));
        let cookie = |text| ("cookie", text);
        for (given, expected) in [
            (vec![remote], None),
            (vec![remote, cookie(secure.as_str())], Some(&one)),
            (vec![remote, cookie(plain.as_str())], None),
            (vec![local, cookie(plain.as_str())], Some(&two)),
            (vec![local, cookie(plain.as_str()), cookie(secure.as_str())], Some(&one)),
            (vec![local, cookie("ark=short")], None),
            (vec![local, cookie("ark")], None),
            // A cookie of another port of the host is that of another service.
            (vec![remote_port, cookie(secure_port.as_str())], Some(&one)),
            (vec![remote_port, cookie(secure.as_str())], None),
            (vec![remote, cookie(secure_port.as_str())], None),
            (vec![local_port, cookie(plain_port.as_str())], Some(&two)),
            (vec![local_port, cookie(plain.as_str())], None),
        ] {
            let expected = expected.and_then(|secret| hash_session(secret));
            assert_eq!(session_hash(&headers(&given)), expected, "{given:?}");
        }
    }
}
