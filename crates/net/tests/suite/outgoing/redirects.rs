//! Redirects: each one is checked, their number is bounded, and credentials stay at their origin.

use bytes::Bytes;
use net::outgoing::{HeaderMap, HeaderValue, Method, OutgoingError, OutgoingRequest, UrlFault};
use test_support::dns::{DnsServer, Record};
use test_support::raw_server::{RawReply, RawServer};

use super::{client_for, get, local_client, send};

#[tokio::test]
async fn redirects_are_followed_and_lead_to_the_last_response() {
    let server = RawServer::start(|request| match request.line() {
        "GET /a" => RawReply::redirect(301, "/b"),
        "GET /b" => RawReply::redirect(302, "c?d=e"),
        "GET /c?d=e" => RawReply::redirect(303, "//127.0.0.1:1/"),
        _ => RawReply::text("end"),
    });
    let server = server.await;
    let client = local_client();
    let error = send(&client, &server.url("/a")).await.unwrap_err();
    assert!(
        matches!(error, OutgoingError::Redirect(UrlFault::Port { port: 1 })),
        "{error:?}"
    );
    assert_eq!(server.lines(), ["GET /a", "GET /b", "GET /c?d=e"]);

    for status in [301, 302, 303, 307, 308] {
        let server = RawServer::start(move |request| match request.line() {
            "GET /" => RawReply::redirect(status, "/end"),
            _ => RawReply::text("end"),
        });
        let server = server.await;
        let response = send(&client, &server.url("/")).await.unwrap();
        assert_eq!(response.target().url().path(), "/end");
        assert_eq!(&response.read(10).await.unwrap().bytes[..], b"end", "{status}");
    }
}

#[tokio::test]
async fn a_redirect_is_checked_like_the_first_url() {
    let client = local_client();
    let private = UrlFault::NotPublic { key: "allow_networks" };
    for (to, expected) in [
        ("http://127.0.0.2/", private),
        ("http://2130706434/", private),
        ("http://0x7f.2/", private),
        ("http://169.254.169.254/latest/meta-data", private),
        ("//10.0.0.1/", private),
        ("http://[::1]/", private),
        ("http://[::ffff:127.0.0.1]/", private),
        ("\\\\10.0.0.1\\", private),
        ("file:///etc/passwd", UrlFault::Scheme),
        ("gopher://example.org/", UrlFault::Scheme),
        ("javascript:alert(1)", UrlFault::Scheme),
        ("http://user:pass@127.0.0.1/", UrlFault::Credentials),
        ("http://127.0.0.1:22/", UrlFault::Port { port: 22 }),
    ] {
        let server = RawServer::start(move |_| RawReply::redirect(302, to)).await;
        let error = send(&client, &server.url("/")).await.unwrap_err();
        let OutgoingError::Redirect(fault) = error else {
            panic!("{to}: {error:?}")
        };
        assert_eq!(fault, expected, "{to}");
        assert_eq!(server.requests().len(), 1, "{to}");
    }
    // A name is checked when it is resolved.
    let dns = DnsServer::start(|_, _| vec![Record::address("127.0.0.2")]).await;
    let client = client_for(&["127.0.0.1/32"], dns.resolver());
    let server = RawServer::start(|_| RawReply::redirect(302, "http://internal.test:8080/")).await;
    let error = send(&client, &server.url("/")).await.unwrap_err();
    assert!(
        matches!(error, OutgoingError::Redirect(fault) if fault == private),
        "{error:?}"
    );
}

#[tokio::test]
async fn chains_and_loops_end() {
    let server = RawServer::start(|request| match request.line() {
        "GET /loop" => RawReply::redirect(302, "/loop"),
        line => {
            let number: usize = line.trim_start_matches("GET /").parse().unwrap();
            match number {
                0 => RawReply::text("end"),
                number => RawReply::redirect(302, &format!("/{}", number - 1)),
            }
        }
    });
    let server = server.await;
    let client = local_client();
    assert_eq!(send(&client, &server.url("/5")).await.unwrap().status(), 200);
    for path in ["/6", "/loop"] {
        let before = server.requests().len();
        let error = send(&client, &server.url(path)).await.unwrap_err();
        assert!(matches!(error, OutgoingError::TooManyRedirects { max: 5 }), "{error:?}");
        assert_eq!(server.requests().len() - before, 6, "{path}");
    }
}

#[tokio::test]
async fn a_response_that_leads_nowhere_is_the_last_one() {
    let client = local_client();
    for reply in [
        RawReply::new(302, &[], ""),
        RawReply::redirect(302, "http://["),
        RawReply::redirect(304, "/elsewhere"),
        RawReply::redirect(300, "/elsewhere"),
    ] {
        let server = RawServer::start(move |_| reply.clone()).await;
        let response = send(&client, &server.url("/")).await.unwrap();
        assert!((300..400).contains(&response.status()));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn credentials_stay_at_their_origin() {
    let other = RawServer::start(|_| RawReply::redirect(302, "/again")).await;
    let to = other.url("/there");
    let server = RawServer::start(move |request| match request.line() {
        "GET /a" => RawReply::redirect(302, "/b"),
        _ => RawReply::redirect(302, &to),
    });
    let server = server.await;
    let client = local_client();
    let request = OutgoingRequest {
        headers: HeaderMap::from_iter([("accept".parse().unwrap(), HeaderValue::from_static("text/html"))]),
        origin_headers: HeaderMap::from_iter([
            (
                "authorization".parse().unwrap(),
                HeaderValue::from_static("Bearer secret"),
            ),
            ("x-key".parse().unwrap(), HeaderValue::from_static("secret")),
        ]),
        ..get(&client, &server.url("/a"))
    };
    let error = client.send(request).await.unwrap_err();
    assert!(matches!(error, OutgoingError::TooManyRedirects { .. }));
    assert_eq!(server.lines(), ["GET /a", "GET /b"]);
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer secret"));
        assert_eq!(request.header("x-key"), Some("secret"));
    }
    assert!(other.requests().len() > 1);
    for request in other.requests() {
        assert_eq!(request.header("accept"), Some("text/html"));
        assert!(!request.head.contains("secret"), "{}", request.head);
        assert!(request.header("referer").is_none(), "{}", request.head);
    }
}

#[tokio::test]
async fn a_request_with_an_effect_follows_no_redirect() {
    let server = RawServer::start(|_| RawReply::redirect(307, "/again")).await;
    let client = local_client();
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let request = OutgoingRequest {
            method: method.clone(),
            body: Some(Bytes::from_static(b"{}")),
            ..get(&client, &server.url("/"))
        };
        assert_eq!(client.send(request).await.unwrap().status(), 307, "{method}");
    }
    assert_eq!(server.requests().len(), 4);
}
