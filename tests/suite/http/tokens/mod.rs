//! Tokens of an identity provider: `oidc-provider`, which is certified, issues them. Without its
//! libraries these tests are left out.

mod matrix;
mod metadata;
mod outages;
pub(crate) mod provider;
mod rotation;
mod tenants;

use reqwest::{Method, RequestBuilder, header};

use self::provider::Provider;
use super::service::Service;
use crate::support::answer::{Answer, read};

/// The audience of all tokens.
const AUDIENCE: &str = "https://agents.example.org";

/// Starts a service that accepts the tokens of providers, each with the name of its settings.
async fn service_of(providers: &[(&str, &Provider)], more: &[(&str, &str)]) -> Service {
    let mut settings = Vec::new();
    for (name, provider) in providers {
        let key = |key: &str| format!("auth.issuers.{name}.{key}");
        settings.push((key("issuer"), provider.issuer.clone()));
        settings.push((key("audience"), format!("[{AUDIENCE:?}]")));
        settings.push((key("tenant_claim"), "/tenant".to_owned()));
    }
    settings.extend(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let settings: Vec<_> = settings
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    Service::start_with(&settings).await
}

fn with_token(service: &Service, method: Method, path: &str, token: &str) -> RequestBuilder {
    let request = service.request(method, path);
    request.header(header::AUTHORIZATION, format!("Bearer {token}"))
}

/// Reads the runs of the caller of a token.
async fn runs_of(service: &Service, token: &str) -> Answer {
    read(with_token(service, Method::GET, "/v1/runs", token)).await
}

fn assert_refused(answer: &Answer, words: &str) {
    answer.assert_problem("invalid_token");
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains(words), "{detail} does not contain {words}");
    let challenge = answer.header("www-authenticate");
    assert!(challenge.contains(r#"error="invalid_token""#), "{challenge}");
}
