//! What callers learn of themselves and of the service: `/v1/me` and `/v1/service`.

use agent_runtime::http::openapi;
use reqwest::Method;
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::databases::Engine;
use values::limits::RunLimits;

use super::docs::validator;
use super::service::Service;
use crate::support::answer::{Answer, read};
use crate::support::members::assert_members;

on_every_store! {
    a_key_learns_its_tenant_its_scopes_and_its_limits,
    the_service_names_its_store,
}

async fn get(service: &Service, secret: &str, path: &str) -> Answer {
    read(service.request(Method::GET, path).bearer_auth(secret)).await
}

fn assert_fits(schema: &str, value: &Value) {
    let description = serde_json::to_value(openapi()).unwrap();
    let validator = validator(&description, schema);
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new(), "{value:#}");
}

#[tokio::test]
async fn without_any_key_the_caller_has_all_scopes() {
    let settings = [
        ("limits.each_tenant.max_steps", "7"),
        ("limits.each_tenant.models", r#"["mock/*"]"#),
        ("limits.tenants.acme.max_steps", "8"),
        ("limits.each_tenant.requests_per_second", "50"),
    ];
    let service = Service::start_with(&settings).await;
    let me = service.get("/v1/me").await;
    assert_fits("Caller", &me);
    let no_limits = json!({
        "max_steps": null, "max_tokens": null, "max_seconds": null, "max_cost": null,
        "max_cost_per_day": null, "max_cost_per_month": null, "agents": [], "models": [], "providers": [],
    });
    let mut runs = no_limits.clone();
    runs["max_steps"] = json!(7);
    runs["models"] = json!(["mock/*"]);
    let limits = json!({
        "runs": runs, "light_runs": null, "queued_runs": null, "readers": null, "max_stored_file_bytes": null,
        "requests_per_second": 50, "request_burst": 50,
    });
    let scopes = json!(["runs:write", "sessions:read", "admin", "metrics", "audit"]);
    assert_eq!(
        me,
        json!({"tenant": "default", "requires_key": false, "scopes": scopes, "key": null, "token": null, "limits": limits})
    );
    let (_, secret) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let me = get(&service, &secret, "/v1/me").await.ok();
    assert_members!(me, {"tenant": "acme", "limits/runs/max_steps": 8, "limits/runs/models": ["mock/*"], "key/runs": no_limits});
    service.finish().await;
}

async fn a_key_learns_its_tenant_its_scopes_and_its_limits(service: &Service) {
    for (scopes, shown) in [
        (&[][..], json!([])),
        (&[Scope::RunsWrite], json!(["runs:write"])),
        (&[Scope::SessionsRead], json!(["sessions:read"])),
        (
            &[Scope::Admin],
            json!(["runs:write", "sessions:read", "admin", "audit"]),
        ),
    ] {
        let limits: RunLimits = serde_json::from_value(json!({"max_cost": 0.5, "agents": ["demo"]})).unwrap();
        let (key_id, secret) = service.make_key_with("acme", scopes, limits).await;
        let answer = get(service, &secret, "/v1/me").await;
        assert!(!answer.text().contains(&secret));
        let me = answer.ok();
        assert_fits("Caller", &me);
        assert_members!(me, {
            "tenant": "acme", "requires_key": true, "scopes": shown, "key/key_id": key_id, "key/label": "",
            "key/runs/max_cost": 0.5, "key/runs/agents": ["demo"], "limits/runs/agents": [],
        });
    }
    service.try_get("/v1/me").await.assert_problem("missing_api_key");
    get(service, "ark_x", "/v1/me").await.assert_problem("invalid_api_key");
}

async fn the_service_names_its_store(service: &Service) {
    let shown = service.get("/v1/service").await;
    assert_fits("Service", &shown);
    let store = match service.database.engine {
        Engine::Postgres => "postgres",
        Engine::Sqlite => "sqlite",
    };
    assert_members!(shown, {
        "version": env!("CARGO_PKG_VERSION"), "features": ["bedrock", "object-store", "redis"], "role": "all",
        "store": store, "redis": false, "mcp_servers": [], "docs": "/docs/guides", "openapi": "/openapi.json",
    });
    for address in [&shown["docs"], &shown["openapi"]] {
        assert_eq!(service.try_get(address.as_str().unwrap()).await.status, 200);
    }
    let tools: Vec<_> = shown["tools"].as_array().unwrap().iter().collect();
    assert!(
        tools.contains(&&json!("calculator")) && tools.contains(&&json!("shell")),
        "{tools:?}"
    );
    let (_, writer) = service.make_key("acme", &[Scope::RunsWrite]).await;
    get(service, &writer, "/v1/service")
        .await
        .assert_problem("missing_scope");
}

#[tokio::test]
async fn the_service_shows_no_secret_address_or_path() {
    const SECRETS: [&str; 6] = [
        "key-hunter1",
        "key-hunter2",
        "key-hunter3",
        "key-hunter4",
        "key-hunter5",
        "whsec_aHVudGVyNjZodW50ZXI2Nmh1bnRlcjY2",
    ];
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, SECRETS[0]).unwrap();
    let secret = secret.to_str().unwrap();
    let signing = folder.path().join("signing");
    std::fs::write(&signing, SECRETS[5]).unwrap();
    let signing = signing.to_str().unwrap();
    let web = "url = \"http://127.0.0.1/hidden\"\nallow_http = true\nallow_networks = [\"127.0.0.1\"]\n\
               [headers]\nAuthorization = { secret = \"main\" }\nX-Plain = \"key-hunter4\"\n";
    std::fs::write(folder.path().join("web.toml"), web).unwrap();
    let redis = format!("redis://user:{}@127.0.0.1:1/", SECRETS[1]);
    let settings = [
        ("mcp.directory", folder.path().to_str().unwrap()),
        ("tools.secrets.main.file", secret),
        ("webhooks.secrets.main.file", signing),
        ("webhooks.secrets.main.tenants", r#"["*"]"#),
        ("board.url", &redis),
        ("providers.paid.kind", "anthropic"),
        ("providers.paid.base_url", "https://paid.invalid/hidden"),
        ("providers.paid.api_key_env", "PAID_KEY"),
        ("providers.paid.headers.X-Team", SECRETS[4]),
        ("PAID_KEY", SECRETS[2]),
    ];
    let service = Service::start_with(&settings).await;
    let answer = service.try_get("/v1/service").await;
    let hidden = [
        "hidden",
        "127.0.0.1",
        "invalid",
        "PAID_KEY",
        service.database.url(),
        folder.path().to_str().unwrap(),
        service.agents.path().to_str().unwrap(),
    ];
    for text in SECRETS.into_iter().chain(hidden) {
        assert!(!answer.text().contains(text), "{text}: {}", answer.text());
    }
    let shown = answer.ok();
    assert_members!(shown, {"redis": true, "mcp_servers": [{"name": "web", "state": "idle"}]});
    let provider = |name: &str| {
        let mut providers = shown["providers"].as_array().unwrap().iter();
        providers.find(|provider| provider["name"] == name).unwrap().clone()
    };
    for (name, kind, has_credentials, models) in [
        ("paid", "anthropic", true, json!([])),
        ("keyless", "openai_chat", false, json!([])),
        ("mock", "openai_chat", true, json!(["echo", "gated"])),
    ] {
        let expected = json!({"name": name, "kind": kind, "has_credentials": has_credentials, "models": models});
        assert_eq!(provider(name), expected);
    }
    service.finish().await;
}
