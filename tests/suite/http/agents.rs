//! Agents over HTTP.

use agent_runtime::store::Scope;
use reqwest::Method;
use serde_json::json;

use super::service::Service;
use crate::support::answer::read;

on_every_store! {
    an_agent_is_stored_shown_used_and_deleted,
    agents_are_listed_by_name_in_pages,
    configured_agents_are_shown_whole_to_administrators_alone,
}

async fn an_agent_is_stored_shown_used_and_deleted(service: &Service) {
    let body = json!({"description": "Counts.", "model": "mock/echo", "tools": ["calculator"], "budget": {"max_steps": 3},
        "metadata": {"team": "blue"}});
    let stored = service.put("/v1/agents/counter", &body).await.ok();
    assert_eq!(stored["name"], "counter");
    assert_eq!(stored["driver"], "tool_calling");
    assert_eq!(stored["version"].as_str().unwrap().len(), 64);
    assert_eq!(service.get("/v1/agents/counter").await, stored);
    let run = service.run_with(json!({"agent": "counter", "input": "hi"})).await;
    assert_eq!(
        (&run["agent"], &run["agent_version"]),
        (&json!("counter"), &stored["version"])
    );
    let changed = service
        .put("/v1/agents/counter", &json!({"model": "mock/echo"}))
        .await
        .ok();
    assert_ne!(changed["version"], stored["version"]);
    assert_eq!(
        read(service.request(Method::DELETE, "/v1/agents/counter")).await.status,
        204
    );
    service
        .try_get("/v1/agents/counter")
        .await
        .assert_problem("agent_not_found");
}

async fn agents_are_listed_by_name_in_pages(service: &Service) {
    for name in ["c", "a", "b"] {
        service.put_agent(name, json!({"model": "mock/echo"})).await;
    }
    let mut names = Vec::new();
    let mut path = "/v1/agents?limit=2".to_owned();
    loop {
        let page = service.get(&path).await;
        names.extend(
            page["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|agent| agent["name"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/agents?limit=2&cursor={cursor}");
    }
    assert_eq!(names, ["a", "b", "c", "demo"]);
}

async fn configured_agents_are_shown_whole_to_administrators_alone(service: &Service) {
    let body = json!({"model": "mock/echo", "system_prompt": "Ours."});
    service.put("/v1/agents/own", &body).await.ok();
    let open = service.get("/v1/agents/demo").await;
    assert_eq!(
        open["tools"],
        json!(["calculator"]),
        "without keys everybody administers"
    );
    for (scope, is_whole) in [(Scope::SessionsRead, false), (Scope::Admin, true)] {
        let (_, key) = service.make_key("default", &[scope]).await;
        let get = async |path: &str| read(service.request(Method::GET, path).bearer_auth(&key)).await.ok();
        let own = get("/v1/agents/own").await;
        assert_eq!(own["system_prompt"], "Ours.", "a tenant's agents are its own");
        let (shown, listed) = (get("/v1/agents/demo").await, get("/v1/agents").await);
        assert_eq!(listed["data"], json!([shown, own]));
        let expected = if is_whole {
            open.clone()
        } else {
            json!({
                "name": "demo",
                "description": open["description"],
                "version": open["version"],
                "created_at": open["created_at"],
            })
        };
        assert_eq!(shown, expected);
    }
}
