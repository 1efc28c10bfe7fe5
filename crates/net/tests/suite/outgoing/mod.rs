//! The guard of outgoing requests over real sockets: names, redirects, and the limits of responses.

mod names;
mod redirects;
mod responses;

use std::sync::Arc;
use std::time::Duration;

use net::outgoing::{
    AddressRules, ClientSettings, HeaderMap, Method, NameResolver, OutgoingClient, OutgoingError, OutgoingRequest,
    OutgoingResponse, PrivateAddresses, RuleKeys, SystemResolver,
};

const KEYS: RuleKeys = RuleKeys {
    allow_http: "allow_http",
    private: "allow_networks",
};

/// Makes a client that may connect to these networks besides public addresses.
fn client_for(networks: &[&str], resolver: Arc<dyn NameResolver>) -> OutgoingClient {
    let networks = networks.iter().map(|network| network.parse().unwrap());
    let rules = AddressRules {
        allow_http: true,
        private: PrivateAddresses::In(networks.collect()),
        ..AddressRules::public(KEYS)
    };
    let settings = ClientSettings {
        connect_timeout: Duration::from_secs(5),
        decompress: true,
    };
    OutgoingClient::new(rules, settings, resolver).unwrap()
}

/// Makes a client that may connect to `127.0.0.1` only, besides public addresses.
fn local_client() -> OutgoingClient {
    client_for(&["127.0.0.1/32"], Arc::new(SystemResolver))
}

/// Makes a GET request of a permitted URL.
fn get(client: &OutgoingClient, url: &str) -> OutgoingRequest {
    OutgoingRequest {
        method: Method::GET,
        target: client.target(url).unwrap(),
        headers: HeaderMap::new(),
        origin_headers: HeaderMap::new(),
        body: None,
        max_redirects: 5,
    }
}

async fn send(client: &OutgoingClient, url: &str) -> Result<OutgoingResponse, OutgoingError> {
    client.send(get(client, url)).await
}
