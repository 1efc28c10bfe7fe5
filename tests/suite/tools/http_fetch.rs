//! `http_fetch` over real sockets: what the model reads, and where no request goes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agent::ports::Tool;
use net::outgoing::{
    AddressRules, ClientSettings, HttpMethod, NameResolver, OutgoingClient, PrivateAddresses, RuleKeys, SystemResolver,
};
use serde_json::json;
use test_support::dns::{DnsServer, Record};
use test_support::raw_server::{RawReply, RawServer};
use tools::{HttpFetchSettings, http_fetch};
use values::json::Value;

use super::setup::call;
use crate::support::table::rows;
use crate::support::text::assert_contains;

pub(super) fn settings() -> HttpFetchSettings {
    HttpFetchSettings {
        methods: BTreeSet::from([HttpMethod::Get, HttpMethod::Head]),
        timeout: Duration::from_secs(30),
        max_redirects: 5,
        max_response_bytes: 10_000,
        max_text_bytes: 5_000,
        default_text_bytes: 2_000,
        user_agent: None,
    }
}

pub(super) fn tool_with(settings: HttpFetchSettings, resolver: Arc<dyn NameResolver>) -> Arc<dyn Tool> {
    let rules = AddressRules {
        allow_http: true,
        private: PrivateAddresses::In(vec!["127.0.0.1/32".parse().unwrap()]),
        deny_hosts: vec!["*.denied.test".parse().unwrap()],
        ..AddressRules::public(RuleKeys {
            allow_http: "tools.http_fetch.allow_http",
            private: "tools.http_fetch.allow_networks",
        })
    };
    let client = ClientSettings {
        connect_timeout: Duration::from_secs(30),
        decompress: true,
    };
    http_fetch(settings, OutgoingClient::new(rules, client, resolver).unwrap())
}

fn tool() -> Arc<dyn Tool> {
    tool_with(settings(), Arc::new(SystemResolver))
}

async fn fetch(url: &str) -> Result<String, String> {
    call(&tool(), &json!({"url": url})).await
}

#[tokio::test]
async fn a_page_is_returned_as_text_with_status_and_headers() {
    let html = "<html><head><title>News</title></head><body><p>One <a href='/two'>two</a>.</body></html>";
    let server = RawServer::start(move |_| {
        let headers = [("content-type", "text/html"), ("etag", "\"7\""), ("set-cookie", "a=b")];
        RawReply::new(200, &headers, html)
    });
    let server = server.await;
    let url = server.url("/page?q=1");
    let two = server.url("/two");
    let head = format!("HTTP 200 from {url}\ncontent-type: text/html\netag: \"7\"\n\n");
    assert_eq!(fetch(&url).await.unwrap(), format!("{head}News\n\nOne [two]({two})."));
    let raw = call(&tool(), &json!({"url": url, "format": "raw"})).await;
    assert_eq!(raw.unwrap(), format!("{head}{html}"));
    let request = &server.requests()[0];
    assert_eq!(request.line(), "GET /page?q=1");
    assert!(request.header("user-agent").unwrap().starts_with("agent-runtime/"));
    assert!(request.header("accept").unwrap().contains("text/html"));
}

#[tokio::test]
async fn a_long_text_comes_in_parts() {
    let numbers: Vec<_> = (0..1_000).map(|number| format!("{number:04} ")).collect();
    let text = numbers.concat();
    let body = text.clone();
    let server = RawServer::start(move |_| RawReply::text(&body)).await;
    let (mut whole, mut offset) = (String::new(), 0);
    while offset < text.len() {
        let arguments = json!({"url": server.url("/"), "offset": offset, "max_bytes": 1_500});
        let answer = call(&tool(), &arguments).await.unwrap();
        let (head, part) = answer.split_once("\n\n").unwrap();
        whole.push_str(part);
        offset += part.len();
        if offset < text.len() {
            assert_contains!(
                head,
                &format!("of 5000 of the text; read on with \"offset\": {offset}]")
            );
        }
    }
    assert_eq!(whole, text);

    // Beyond the limit of the response, nothing was read.
    let server = RawServer::start(|_| RawReply::text(&"x".repeat(10_001))).await;
    let answer = fetch(&server.url("/")).await.unwrap();
    assert_contains!(answer, "[only the first 10000 bytes of the response were read]\n");
    assert_contains!(answer, "[bytes 0 to 2000 of 10000 of the text; read on with");
}

#[tokio::test]
async fn binary_content_is_named_and_not_read() {
    let endless = RawReply::bytes("HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n").then_repeat([0; 1000]);
    for (reply, expected) in [
        (
            RawReply::new(200, &[("content-type", "image/png")], [0; 77]),
            "77 bytes",
        ),
        (endless, "unknown size"),
        (RawReply::new(200, &[], b"a\0b"), "3 bytes"),
    ] {
        let server = RawServer::start(move |_| reply.clone()).await;
        let answer = fetch(&server.url("/")).await.unwrap();
        assert!(
            answer.ends_with(&format!("[binary content of {expected}, which is not shown]")),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn an_error_response_is_an_error_with_its_text() {
    let server =
        RawServer::start(|_| RawReply::new(404, &[("content-type", "text/plain")], "no such page ".repeat(500)));
    let server = server.await;
    let error = fetch(&server.url("/")).await.unwrap_err();
    assert!(
        error.starts_with(&format!("HTTP 404 from {}\n", server.url("/"))),
        "{error}"
    );
    assert!(error.contains("no such page") && error.len() < 2_300, "{}", error.len());

    let silent = RawServer::start(|_| RawReply::bytes("").then_hang()).await;
    let quick = HttpFetchSettings {
        timeout: Duration::from_millis(50),
        ..settings()
    };
    let quick = tool_with(quick, Arc::new(SystemResolver));
    let error = call(&quick, &json!({"url": silent.url("/secret-path")}))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        "no response from 127.0.0.1: it did not answer in time; the same call may succeed later"
    );
}

/// URLs that are refused, and the words about each.
const REFUSED: &str = "
http://internal.test:PORT/            | no response from internal.test: its address is not public
http://alias.test:PORT/               | no response from alias.test: its address is not public
http://metadata.test/                 | no response from metadata.test: its address is not public
http://example.org@127.0.0.2:PORT/    | the url can't be used: it holds credentials
http://[fe80::1%25lo]/                | the url can't be used: it is no URL such as https://example.org/path
http://www.denied.test/               | the url can't be used: its host is not allowed
http://permitted.test:22/             | the url can't be used: its port 22 is not allowed
file:///etc/passwd                    | the url can't be used: its scheme is neither https nor http
";

#[tokio::test]
async fn no_request_goes_to_an_address_that_is_not_permitted() {
    let dns = DnsServer::start(|name, _| match name {
        "internal.test" => vec![Record::address("127.0.0.2")],
        "metadata.test" => vec![Record::address("169.254.169.254")],
        "alias.test" => vec![Record::Alias("internal.test")],
        _ => vec![Record::address("127.0.0.1")],
    });
    let dns = dns.await;
    let tool = tool_with(settings(), dns.resolver());
    let elsewhere = RawServer::start_on("127.0.0.2:0", |_| RawReply::text("internal")).await;
    let port = elsewhere.port();
    let private = "the url can't be used: its address is not public (the operator can allow it with \
                   tools.http_fetch.allow_networks)";
    let error_at = async |url: &str| {
        let url = url.replace("PORT", &port.to_string());
        call(&tool, &json!({"url": url})).await.unwrap_err()
    };
    for url in [
        "http://127.0.0.2:PORT/",
        "http://2130706434:PORT/",
        "http://0x7f000002:PORT/",
        "http://0177.0.0.2:PORT/",
        "http://127.2:PORT/",
        "http://[::ffff:127.0.0.2]:PORT/",
        "http://[::ffff:7f00:2]:PORT/",
        "http://[::1]/",
        "http://0.0.0.0/",
        "http://169.254.169.254/latest/meta-data/",
    ] {
        assert_eq!(error_at(url).await, private, "{url}");
    }
    for [url, expected] in rows(REFUSED) {
        assert_eq!(error_at(url).await, expected, "{url}");
    }
    assert!(elsewhere.requests().is_empty());
    let permitted = RawServer::start(|_| RawReply::text("permitted")).await;
    let url = format!("http://permitted.test:{}/", permitted.port());
    assert!(call(&tool, &json!({"url": url})).await.unwrap().ends_with("permitted"));
}

#[tokio::test]
async fn a_redirect_to_the_network_of_the_operator_is_an_error_that_names_no_address() {
    let server = RawServer::start(|_| RawReply::redirect(302, "http://127.0.0.2:9/secret")).await;
    let error = fetch(&server.url("/")).await.unwrap_err();
    assert_eq!(
        error,
        "no response from 127.0.0.1: it redirects to an address that is refused: its address is not public \
         (the operator can allow it with tools.http_fetch.allow_networks)"
    );
}

/// The name and value of a header that is refused, and the words about it.
const BAD_HEADERS: &str = r#"
Host                | internal            | the header host can't be set
content-length      | 5                   | the header content-length can't be set
Transfer-Encoding   | chunked             | the header transfer-encoding can't be set
Proxy-Authorization | x                   | the header proxy-authorization can't be set
User-Agent          | x                   | the header user-agent can't be set
x                   | a\r\nHost: internal | the header x has a value that can't be sent
a b                 | x                   | "a b" is not the name of a header
a\r\nb              | x                   | "a\r\nb" is not the name of a header
"#;

#[tokio::test]
async fn headers_of_the_model_are_checked_and_stay_at_their_origin() {
    let other = RawServer::start(|_| RawReply::text("other")).await;
    let to = other.url("/");
    let server = RawServer::start(move |_| RawReply::redirect(302, &to)).await;
    let arguments = json!({
        "url": server.url("/"),
        "headers": {"Authorization": "Bearer t", "X-Key": "k", "Accept": "text/csv", "accept-language": "de"},
    });
    assert!(call(&tool(), &arguments).await.unwrap().ends_with("other"));
    let first = &server.requests()[0];
    assert_eq!(
        (first.header("authorization"), first.header("x-key")),
        (Some("Bearer t"), Some("k"))
    );
    let second = &other.requests()[0];
    assert_eq!((second.header("authorization"), second.header("x-key")), (None, None));
    assert_eq!(
        (second.header("accept"), second.header("accept-language")),
        (Some("text/csv"), Some("de"))
    );

    for [name, value, expected] in rows(BAD_HEADERS) {
        let [name, value] = [name, value].map(|text| text.replace("\\r\\n", "\r\n"));
        let arguments = json!({"url": server.url("/"), "headers": {name: value}});
        assert_eq!(call(&tool(), &arguments).await.unwrap_err(), expected);
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn methods_with_effects_are_off_unless_the_operator_allows_them() {
    let server = RawServer::start(|request| RawReply::text(&format!("got {}", request.body))).await;
    let safe = tool();
    assert!(safe.spec().idempotent);
    assert_eq!(safe.spec().parameters["properties"].get("body"), None::<&Value>);
    let arguments = json!({"url": server.url("/"), "method": "POST"});
    let error = call(&safe, &arguments).await.unwrap_err();
    assert!(error.contains("\"POST\" is not one of"), "{error}");
    let head = call(&safe, &json!({"url": server.url("/"), "method": "HEAD"}))
        .await
        .unwrap();
    assert!(head.starts_with("HTTP 200"), "{head}");

    let with_effects = HttpFetchSettings {
        methods: BTreeSet::from([HttpMethod::Get, HttpMethod::Post]),
        ..settings()
    };
    let tool = tool_with(with_effects, Arc::new(SystemResolver));
    assert!(!tool.spec().idempotent);
    let arguments = json!({"url": server.url("/"), "method": "POST", "body": "some text"});
    assert!(call(&tool, &arguments).await.unwrap().ends_with("got some text"));
    let arguments = json!({"url": server.url("/"), "body": "some text"});
    let error = call(&tool, &arguments).await.unwrap_err();
    assert_eq!(error, "a request with the method GET has no body");
    let lines = server.lines();
    assert_eq!(lines, ["HEAD /", "POST /"]);
}
