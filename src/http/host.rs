//! Checks the host that a request was sent to, and its origin.
//!
//! Only the network protects a service without API keys, and two attacks bypass that protection. A
//! web page can resolve its own name to 127.0.0.1 (DNS rebinding) and then read all responses. A
//! proxy can forward foreign requests. So while no key exists, the service responds only under its
//! known names, and not to proxies or to web pages of origins that are not allowed.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri, Version, header};

use super::codes::ProblemCode;
use super::limits::HttpLimits;
use super::problem::Problem;

/// The names of proxy headers, or their prefixes.
const FORWARDED: [&str; 6] = [
    "forwarded",
    "x-forwarded-",
    "x-real-ip",
    "via",
    "true-client-ip",
    "cf-connecting-ip",
];

/// Checks that a request names one host, as HTTP/1.1 demands (RFC 9112).
pub(super) fn check_host(request: &Request) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let fault = match (hosts.next(), hosts.next()) {
        (None, _) if request.version() < Version::HTTP_11 => return Ok(()),
        (None, _) => "the header is missing",
        (Some(_), Some(_)) => "the header is given twice",
        (Some(_), None) if host_header(request.headers()).is_none() => "not a host, or a host and a port",
        (Some(_), None) => return Ok(()),
    };
    Err(Problem::of_field(ProblemCode::MalformedRequest, "host", fault))
}

/// Checks a request to a service that has no key.
pub(super) fn check_anonymous(target: &Uri, headers: &HeaderMap, limits: &HttpLimits) -> Result<(), Problem> {
    let host = host_header(headers);
    // The host of an absolute target overrides the header, so both must be known.
    let mut named = host.iter().chain(target.authority());
    if let Some(unknown) = named.find(|authority| !is_known(&host_name(authority), limits)) {
        let words = format!(
            "there is no API key, so the service answers to loopback names and those of `http.allowed_hosts`, not to {:?}",
            unknown.host()
        );
        return Err(Problem::new(ProblemCode::HostNotAllowed, words));
    }
    check_origin(headers, limits)?;
    let passed_on = headers.keys().find(|name| is_of_proxy(name));
    if let Some(name) = passed_on.filter(|_| !limits.is_exposed) {
        let words =
            format!("there is no API key, and the header `{name}` says that a proxy lets others reach the service");
        return Err(Problem::new(ProblemCode::ProxiedWithoutKey, words));
    }
    Ok(())
}

/// Refuses requests from web pages of other origins than the service's own and the configured ones.
/// Other callers send no origin.
pub(super) fn check_origin(headers: &HeaderMap, limits: &HttpLimits) -> Result<(), Problem> {
    let is_allowed = |origin: &str| is_own_origin(origin, headers) || is_allowed_origin(origin, limits);
    let mut origins = headers.get_all(header::ORIGIN).iter();
    if origins.all(|origin| origin.to_str().is_ok_and(is_allowed)) {
        return Ok(());
    }
    let words = "the header Origin names a web page that `http.allowed_origins` does not allow";
    Err(Problem::new(ProblemCode::OriginNotAllowed, words))
}

/// Returns whether the configuration allows pages of the origin to call.
pub(super) fn is_allowed_origin(origin: &str, limits: &HttpLimits) -> bool {
    limits.allowed_origins.contains(&origin.to_ascii_lowercase())
}

/// Returns the host of the header, if the header is present once and valid.
fn host_header(headers: &HeaderMap) -> Option<Authority> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let authority: Authority = host.parse().ok()?;
    // An authority may also have a user name or an invalid port.
    let port = authority.as_str().strip_prefix(authority.host())?.strip_prefix(':');
    let is_plain = !authority.host().is_empty() && port.is_none_or(|port| port.parse::<u16>().is_ok());
    is_plain.then_some(authority)
}

/// Returns the host name in lower case, without a final dot and without the brackets of an IPv6
/// address.
fn host_name(authority: &Authority) -> String {
    let host = authority.host().to_ascii_lowercase();
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .trim_end_matches('.')
        .to_owned()
}

fn is_known(host: &str, limits: &HttpLimits) -> bool {
    if let Ok(address) = host.parse::<IpAddr>() {
        // DNS rebinding can't redirect an IP address, so an exposed service responds under any
        // address.
        return address.to_canonical().is_loopback() || limits.is_exposed || limits.allowed_hosts.contains(host);
    }
    host == "localhost" || limits.allowed_hosts.contains(host)
}

/// Returns whether the host of the request is a name of this machine that no other machine has.
pub(super) fn is_loopback_host(headers: &HeaderMap) -> bool {
    let name = host_header(headers).map(|host| host_name(&host)).unwrap_or_default();
    let address: Option<IpAddr> = name.parse().ok();
    name == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback())
}

/// Returns the port that the header `Host` names. Browsers leave out the default port.
pub(super) fn host_port(headers: &HeaderMap) -> Option<u16> {
    host_header(headers)?.port_u16()
}

/// Returns whether a page of the origin was served under the host of the request.
pub(super) fn is_own_origin(origin: &str, headers: &HeaderMap) -> bool {
    host_header(headers).is_some_and(|host| is_origin_of(origin, &host))
}

/// Returns whether a page of the origin was served under the host, by the service itself or by a
/// proxy that ends TLS for it.
fn is_origin_of(origin: &str, host: &Authority) -> bool {
    let (authority, default_port) = match origin.split_once("://") {
        Some(("http", authority)) => (authority, 80),
        Some(("https", authority)) => (authority, 443),
        _ => return false,
    };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(default_port);
    let authority: Result<Authority, _> = authority.parse();
    authority.is_ok_and(|authority| host_name(&authority) == host_name(host) && port(&authority) == port(host))
}

fn is_of_proxy(name: &HeaderName) -> bool {
    FORWARDED.iter().any(|known| match known.strip_suffix('-') {
        Some(_) => name.as_str().starts_with(known),
        None => name.as_str() == *known,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;

    use super::*;

    fn request(target: &str, headers: &[(&str, &str)]) -> Request {
        let request = Request::builder().uri(target);
        let request = headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(Body::empty()).unwrap()
    }

    fn limits(is_exposed: bool) -> HttpLimits {
        HttpLimits {
            listen: ([127, 0, 0, 1], 0).into(),
            max_body_bytes: 0,
            max_json_depth: 0,
            max_json_values: 0,
            max_header_bytes: 0,
            allowed_hosts: ["agents.example".to_owned()].into(),
            allowed_origins: ["https://app.example".to_owned()].into(),
            is_exposed,
            header_timeout: Duration::ZERO,
            request_timeout: Duration::ZERO,
            min_transfer_rate: 0,
            max_bytes_in_flight: 0,
            max_connections: 0,
            max_input_messages: 0,
            keep_alive_interval: Duration::ZERO,
        }
    }

    fn code_of(request: &Request, limits: &HttpLimits) -> Result<(), ProblemCode> {
        check_anonymous(request.uri(), request.headers(), limits).map_err(|problem| problem.code())
    }

    #[test]
    fn only_known_hosts_are_answered_to() {
        for (host, alone, exposed) in [
            ("localhost", true, true),
            ("LocalHost.:8080", true, true),
            ("127.0.0.1:8080", true, true),
            ("127.8.9.10", true, true),
            ("[::1]:8080", true, true),
            ("[::ffff:127.0.0.1]", true, true),
            ("agents.example", true, true),
            ("Agents.Example.:443", true, true),
            ("10.0.0.7:8080", false, true),
            ("0.0.0.0:8080", false, true),
            ("evil.example", false, false),
            ("evil.localhost.example", false, false),
            ("localhost.evil.example:8080", false, false),
            ("127.0.0.1.evil.example", false, false),
            ("127.1", false, false),
        ] {
            let request = request("/v1/runs", &[("host", host)]);
            for (is_exposed, expected) in [(false, alone), (true, exposed)] {
                let expected = if expected {
                    Ok(())
                } else {
                    Err(ProblemCode::HostNotAllowed)
                };
                assert_eq!(code_of(&request, &limits(is_exposed)), expected, "{host} {is_exposed}");
            }
        }
        let absolute = request("http://evil.example/v1/runs", &[("host", "localhost")]);
        assert_eq!(code_of(&absolute, &limits(false)), Err(ProblemCode::HostNotAllowed));
    }

    #[test]
    fn only_pages_of_the_service_itself_and_of_allowed_origins_are_answered() {
        for (host, origin, is_allowed) in [
            ("localhost:8080", "http://localhost:8080", true),
            ("LOCALHOST:8080", "http://localhost:8080", true),
            ("localhost", "http://localhost:80", true),
            ("agents.example", "https://agents.example", true),
            ("agents.example:443", "https://agents.example", true),
            ("localhost:8080", "https://app.example", true),
            ("localhost:8080", "HTTPS://APP.example", true),
            ("localhost:8080", "http://app.example", false),
            ("localhost:8080", "https://app.example:8443", false),
            ("localhost:8080", "https://app.example.evil", false),
            ("localhost:8080", "http://localhost:3000", false),
            ("localhost:8080", "http://127.0.0.1:8080", false),
            ("localhost:8080", "http://localhost", false),
            ("localhost:8080", "https://evil.example", false),
            ("localhost", "null", false),
            ("localhost", "file://localhost", false),
            ("localhost", "", false),
        ] {
            let request = request("/v1/runs", &[("host", host), ("origin", origin)]);
            let expected = if is_allowed {
                Ok(())
            } else {
                Err(ProblemCode::OriginNotAllowed)
            };
            assert_eq!(code_of(&request, &limits(false)), expected, "{host} {origin}");
        }
        let two = [
            ("host", "localhost"),
            ("origin", "https://app.example"),
            ("origin", "http://evil.example"),
        ];
        assert_eq!(
            code_of(&request("/v1/runs", &two), &limits(false)),
            Err(ProblemCode::OriginNotAllowed)
        );
    }

    #[test]
    fn what_a_proxy_passes_on_needs_a_key_or_that_the_service_is_exposed() {
        for name in [
            "forwarded",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-real-ip",
            "via",
        ] {
            let request = request("/v1/runs", &[("host", "localhost"), (name, "1")]);
            let refused = Err(ProblemCode::ProxiedWithoutKey);
            assert_eq!(code_of(&request, &limits(false)), refused, "{name}");
            assert_eq!(code_of(&request, &limits(true)), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        for (hosts, is_one) in [
            (&["localhost"][..], true),
            (&["a:8080"], true),
            (&["a:"], false),
            (&[], false),
            (&["a", "a"], false),
            (&["user@a"], false),
            (&["a b"], false),
            (&[""], false),
            (&["a/b"], false),
            (&["a:99999"], false),
            (&["[::1"], false),
        ] {
            let headers: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
            assert_eq!(check_host(&request("/", &headers)).is_ok(), is_one, "{hosts:?}");
        }
        let mut old = request("/", &[]);
        *old.version_mut() = Version::HTTP_10;
        assert!(check_host(&old).is_ok());
    }
}
