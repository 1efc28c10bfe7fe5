//! How MCP clients find the identity provider (RFC 9728).

use reqwest::Method;
use serde_json::json;

use super::provider::Provider;
use super::{service_of, with_token};
use crate::http::service::Service;
use crate::support::answer::{read, with_json};

const DOCUMENT: &str = "/.well-known/oauth-protected-resource";

#[tokio::test]
async fn a_client_of_mcp_finds_the_provider_and_calls_with_its_token() {
    let Some(provider) = Provider::start(&["ES256"]).await else {
        return;
    };
    let resource = ("auth.resource", super::AUDIENCE);
    let service = service_of(&[("main", &provider)], &[resource]).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let accept = ("accept", "application/json, text/event-stream");
    let refused = read(with_json(
        service.request(Method::POST, "/mcp").header(accept.0, accept.1),
        &ping,
    ))
    .await;
    refused.assert_problem("missing_api_key");
    let named = format!(r#"resource_metadata="{}{DOCUMENT}""#, super::AUDIENCE);
    let challenge = refused.header("www-authenticate");
    assert!(
        challenge.ends_with(&named) && !challenge.contains("error"),
        "{challenge}"
    );
    for path in [DOCUMENT.to_owned(), format!("{DOCUMENT}/mcp")] {
        let document = service.get(&path).await;
        assert_eq!(
            document,
            json!({
                "resource": super::AUDIENCE,
                "authorization_servers": [provider.issuer],
                "scopes_supported": ["runs:write", "sessions:read"],
                "bearer_methods_supported": ["header"],
                "resource_name": "agent-runtime",
            })
        );
    }
    let token = provider.token(json!({})).await;
    let request = with_token(&service, Method::POST, "/mcp", &token).header(accept.0, accept.1);
    assert_ne!(read(with_json(request, &ping)).await.status, 401);
    service.finish().await;
}

#[tokio::test]
async fn without_a_provider_there_is_no_document() {
    let service = Service::start().await;
    service.try_get(DOCUMENT).await.assert_problem("route_not_found");
    service.finish().await;
}
