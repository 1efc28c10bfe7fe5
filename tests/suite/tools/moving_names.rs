//! Names that a DNS server resolves to another address each time, for `http_fetch` and HTTP tools.
//!
//! `127.0.0.1` is the permitted host in these tests. `127.0.0.2` is the internal one.

use std::sync::Arc;

use agent::ports::Tool;
use net::outgoing::NameResolver;
use serde_json::json;
use test_support::dns::{DnsServer, Record};
use test_support::raw_server::{RawReply, RawServer};
use values::json::Value;

use super::setup::call;
use super::{http_fetch, http_tools};

/// A tool that sends requests to one origin, and the key with which an operator permits addresses.
struct Caller {
    tool: Arc<dyn Tool>,
    origin: String,
    key: &'static str,
    /// Whether the URL is an argument. Otherwise it is a part of the definition.
    has_url: bool,
}

impl Caller {
    /// Calls the tool with a path. Returns what the model reads, without the head of a response.
    async fn call(&self, path: &str) -> Result<String, String> {
        let arguments: Value = if self.has_url {
            json!({"url": format!("{}/{path}", self.origin)})
        } else {
            json!({"path": path})
        };
        let answer = call(&self.tool, &arguments).await?;
        Ok(answer.rsplit("\n\n").next().unwrap().to_owned())
    }
}

/// Makes both kinds of tools for a host.
fn callers(host: &str, port: u16, resolver: &Arc<dyn NameResolver>) -> [Caller; 2] {
    let origin = format!("http://{host}:{port}");
    let definition = "name = 'api'\ndescription = 'Reads.'\nurl = 'SERVER/{path}'";
    [
        Caller {
            tool: http_fetch::tool_with(http_fetch::settings(), Arc::clone(resolver)),
            origin: origin.clone(),
            key: "tools.http_fetch.allow_networks",
            has_url: true,
        },
        Caller {
            tool: http_tools::tool_with(definition, &origin, Arc::clone(resolver)),
            origin,
            key: "allow_networks",
            has_url: false,
        },
    ]
}

fn permitted_address() -> Vec<Record> {
    vec![Record::address("127.0.0.1")]
}

fn internal_address() -> Vec<Record> {
    vec![Record::address("127.0.0.2")]
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_connected_to() {
    for kind in 0..2 {
        let (permitted, internal) = RawServer::permitted_and_internal().await;
        // The name is at the internal host at its second lookup only.
        let dns = DnsServer::start(|_, before| match before {
            1 => internal_address(),
            _ => permitted_address(),
        });
        let dns = dns.await;
        let caller = &callers("moving.test", permitted.port(), &dns.resolver())[kind];

        assert_eq!(caller.call("first").await, Ok("permitted".to_owned()));
        // A second lookup within the call would have led to the internal host.
        assert_eq!(dns.asked(), ["moving.test"]);

        assert_eq!(
            caller.call("second").await,
            Err("no response from moving.test: its address is not public".to_owned())
        );
        assert_eq!(dns.asked().len(), 2, "a call that is refused is not repeated");

        assert_eq!(caller.call("third").await, Ok("permitted".to_owned()));
        assert_eq!(permitted.lines(), ["GET /first", "GET /third"]);
        assert!(internal.requests().is_empty());
    }
}

#[tokio::test]
async fn of_several_addresses_only_permitted_ones_are_connected_to() {
    for kind in 0..2 {
        let (permitted, internal) = RawServer::permitted_and_internal().await;
        let dns = DnsServer::start(|_, before| match before {
            0 => [internal_address(), permitted_address()].concat(),
            _ => [internal_address(), vec![Record::address("::1")]].concat(),
        });
        let dns = dns.await;
        let caller = &callers("mixed.test", permitted.port(), &dns.resolver())[kind];
        assert_eq!(caller.call("first").await, Ok("permitted".to_owned()));
        assert_eq!(
            caller.call("second").await,
            Err("no response from mixed.test: its address is not public".to_owned())
        );
        assert_eq!(permitted.lines(), ["GET /first"]);
        assert!(internal.requests().is_empty());
    }
}

/// The permitted host redirects `/NAME` to `http://NAME.test/again`, and `/again` to `/end` of the
/// same name. The internal host is at the same port.
async fn redirecting() -> (RawServer, RawServer) {
    RawServer::permitted_with(|request| {
        let port = request.header("host").unwrap().rsplit_once(':').unwrap().1;
        match request.line().strip_prefix("GET /").unwrap() {
            "again" => RawReply::redirect(302, "/end"),
            "end" => RawReply::text("permitted"),
            path => RawReply::redirect(302, &format!("http://{path}.test:{port}/again")),
        }
    })
    .await
}

#[tokio::test]
async fn each_redirect_is_resolved_and_checked_again() {
    for kind in 0..2 {
        let (permitted, internal) = redirecting().await;
        let dns = DnsServer::start(|name, before| match (name, before) {
            ("internal.test", _) | ("moving.test" | "start.test", 1) => internal_address(),
            _ => permitted_address(),
        });
        let dns = dns.await;
        let callers_from = |host: &str| callers(host, permitted.port(), &dns.resolver());
        let refused = |caller: &Caller, host: &str| {
            let key = caller.key;
            Err(format!(
                "no response from {host}: it redirects to an address that is refused: its address is not public \
                 (the operator can allow it with {key})"
            ))
        };

        // To a name that stays, to one that is internal, and to one that moves between two
        // redirects.
        let caller = &callers_from("first.test")[kind];
        assert_eq!(caller.call("stays").await, Ok("permitted".to_owned()));
        assert_eq!(caller.call("internal").await, refused(caller, "first.test"));
        assert_eq!(caller.call("moving").await, refused(caller, "first.test"));
        // To the name of the call, which has moved meanwhile.
        let caller = &callers_from("start.test")[kind];
        assert_eq!(caller.call("again").await, refused(caller, "start.test"));
        assert_eq!(caller.call("again").await, Ok("permitted".to_owned()));

        assert_eq!(
            permitted.lines(),
            [
                "GET /stays",
                "GET /again",
                "GET /end",
                "GET /internal",
                "GET /moving",
                "GET /again",
                "GET /again",
                "GET /again",
                "GET /end",
            ]
        );
        assert!(internal.requests().is_empty());
    }
}
