//! Names that a DNS server resolves to forbidden addresses, or to another address each time.
//!
//! `127.0.0.1` is the permitted host in these tests. `127.0.0.2` is the internal one.

use net::outgoing::{OutgoingError, UrlFault};
use test_support::dns::{DnsServer, Record};
use test_support::raw_server::{RawReply, RawServer};

use super::{client_for, send};

const PERMITTED: &str = "127.0.0.1/32";

#[tokio::test]
async fn a_name_of_a_forbidden_address_is_refused_in_every_family_and_behind_aliases() {
    let dns = DnsServer::start(|name, _| {
        let address = |text| vec![Record::address(text)];
        match name {
            "loopback.test" => address("127.0.0.2"),
            "metadata.test" => address("169.254.169.254"),
            "private.test" => address("10.0.0.1"),
            "unspecified.test" => address("0.0.0.0"),
            "multicast.test" => address("224.0.0.1"),
            "six.test" => address("::1"),
            "six-any.test" => address("::"),
            "unique.test" => address("fd00:ec2::254"),
            "link.test" => address("fe80::1"),
            "mapped.test" => address("::ffff:127.0.0.1"),
            "mapped-metadata.test" => address("::ffff:169.254.169.254"),
            "nat64.test" => address("64:ff9b::7f00:1"),
            "compatible.test" => address("::7f00:1"),
            "alias.test" => vec![Record::Alias("alias2.test")],
            "alias2.test" => vec![Record::Alias("loopback.test")],
            "both.test" => vec![Record::address("10.0.0.1"), Record::address("fe80::1")],
            _ => Vec::new(),
        }
    });
    let dns = dns.await;
    let (_permitted, internal) = RawServer::permitted_and_internal().await;
    let client = client_for(&[PERMITTED], dns.resolver());
    for name in [
        "loopback",
        "metadata",
        "private",
        "unspecified",
        "multicast",
        "six",
        "six-any",
        "unique",
        "link",
        "mapped",
        "mapped-metadata",
        "nat64",
        "compatible",
        "alias",
        "both",
    ] {
        let url = format!("http://{name}.test:{}/", internal.port());
        let error = send(&client, &url).await.unwrap_err();
        assert!(matches!(error, OutgoingError::NotPublic), "{name}: {error:?}");
    }
    let unknown = send(&client, "http://nobody.test/").await.unwrap_err();
    assert!(matches!(unknown, OutgoingError::Unreachable(_)), "{unknown:?}");
    assert!(internal.requests().is_empty());
}

#[tokio::test]
async fn of_several_addresses_only_permitted_ones_are_connected_to() {
    let (permitted, internal) = RawServer::permitted_and_internal().await;
    let dns = DnsServer::start(|_, _| {
        vec![
            Record::address("127.0.0.2"),
            Record::address("::1"),
            Record::address("127.0.0.1"),
        ]
    });
    let dns = dns.await;
    let client = client_for(&[PERMITTED], dns.resolver());
    let url = format!("http://mixed.test:{}/", permitted.port());
    let body = send(&client, &url).await.unwrap().read(100).await.unwrap();
    assert_eq!(&body.bytes[..], b"permitted");
    assert!(internal.requests().is_empty());
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_connected_to() {
    let (permitted, internal) = RawServer::permitted_and_internal().await;
    // The name moves to the internal host as soon as it was resolved once.
    let dns = DnsServer::start(|_, before| match before {
        0 => vec![Record::address("127.0.0.1")],
        _ => vec![Record::address("127.0.0.2")],
    });
    let dns = dns.await;
    let client = client_for(&[PERMITTED], dns.resolver());
    let url = format!("http://rebind.test:{}/", permitted.port());

    let body = send(&client, &url).await.unwrap().read(100).await.unwrap();
    assert_eq!(&body.bytes[..], b"permitted");
    assert_eq!(
        dns.asked(),
        ["rebind.test"],
        "a second lookup could have a second answer"
    );

    let error = send(&client, &url).await.unwrap_err();
    assert!(matches!(error, OutgoingError::NotPublic), "{error:?}");
    assert_eq!((permitted.requests().len(), internal.requests().len()), (1, 0));
}

#[tokio::test]
async fn a_redirect_to_the_same_name_is_resolved_and_checked_again() {
    let permitted = RawServer::start(|_| RawReply::redirect(302, "/next")).await;
    let internal = RawServer::start_on("127.0.0.2:0", |_| RawReply::text("internal")).await;
    let dns = DnsServer::start(|_, before| match before {
        0 => vec![Record::address("127.0.0.1")],
        _ => vec![Record::address("127.0.0.2")],
    });
    let dns = dns.await;
    let client = client_for(&[PERMITTED], dns.resolver());
    let url = format!("http://rebind.test:{}/", permitted.port());
    let error = send(&client, &url).await.unwrap_err();
    // The first address was public, so the error names the redirect.
    let private = UrlFault::NotPublic { key: "allow_networks" };
    assert!(
        matches!(error, OutgoingError::Redirect(fault) if fault == private),
        "{error:?}"
    );
    assert_eq!(permitted.lines(), ["GET /"]);
    assert_eq!(dns.asked().len(), 2);
    assert!(internal.requests().is_empty());
}
