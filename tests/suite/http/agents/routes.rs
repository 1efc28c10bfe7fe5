//! Agents are stored, shown, listed and deleted.

use reqwest::Method;
use serde_json::{Value, json};
use store::keys::Scope;
use values::limits::RunLimits;

use crate::http::agents::reload::reload;
use crate::http::in_flight::PAGE;
use crate::http::service::Service;
use crate::support::answer::{read, with_json};
use crate::support::members::{assert_members, column};
use crate::support::test_app::session_path;

on_every_store! {
    an_agent_is_stored_shown_used_and_deleted,
    versions_are_shown_to_administrators_alone,
    agents_are_listed_by_name_in_pages,
    configured_agents_are_shown_whole_to_administrators_alone,
    sessions_show_the_prompt_and_the_response_format_of_a_configured_agent,
    a_name_like_the_given_one_is_suggested_if_the_caller_may_use_it,
    large_agents_are_listed_a_few_at_a_time,
}

async fn an_agent_is_stored_shown_used_and_deleted(service: &Service) {
    let body = json!({"description": "Counts.", "model": "mock/echo", "tools": ["calculator"], "budget": {"max_steps": 3},
        "metadata": {"team": "blue"}});
    let stored = service.put("/v1/agents/counter", &body).await.ok();
    assert_members!(stored, {"name": "counter", "driver": "tool_calling"});
    assert_eq!(stored["version"].as_str().unwrap().len(), 64);
    assert_eq!(service.get("/v1/agents/counter").await, stored);
    let run = service.run_with(json!({"agent": "counter", "input": "hi"})).await;
    assert_members!(run, {"agent": "counter", "agent_version": stored["version"]});
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
    let versions = service.rows("/v1/agents/counter/versions?limit=1").await;
    assert_eq!(versions, [changed, stored], "they stay");
}

async fn versions_are_shown_to_administrators_alone(service: &Service) {
    let shown = service.get("/v1/agents/demo").await;
    service.run_with(json!({"agent": "demo", "input": "hi"})).await;
    let rows = service.rows("/v1/agents/demo/versions").await;
    assert_eq!(rows, std::slice::from_ref(&shown), "as a run used it");
    service
        .put("/v1/agents/demo", &json!({"model": "mock/echo"}))
        .await
        .ok();
    let rows = service.rows("/v1/agents/demo/versions").await;
    assert_eq!(column(&json!(rows), "configured"), [&Value::Null, &json!(true)]);
    assert_eq!(rows[1], shown);
    for (name, scope, code) in [
        ("none", Scope::Admin, "agent_not_found"),
        ("a%20b", Scope::Admin, "agent_not_found"),
        ("demo", Scope::SessionsRead, "missing_scope"),
    ] {
        let (_, key) = service.make_key("default", &[scope]).await;
        let path = format!("/v1/agents/{name}/versions");
        read(service.request(Method::GET, &path).bearer_auth(&key))
            .await
            .assert_problem(code);
    }
}

async fn agents_are_listed_by_name_in_pages(service: &Service) {
    for name in ["c", "a", "b"] {
        service.put_agent(name, json!({"model": "mock/echo"})).await;
    }
    let listed = json!(service.rows("/v1/agents?limit=2").await);
    assert_eq!(column(&listed, "name"), ["a", "b", "c", "demo"]);
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
        assert_eq!(own.get("configured"), None);
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
                "configured": true,
            })
        };
        assert_eq!(shown, expected);
    }
    // A refusal tells no more.
    let (_, key) = service.make_key("default", &[Scope::RunsWrite]).await;
    let request = service.request(Method::POST, "/v1/runs").bearer_auth(&key);
    let refused = read(with_json(
        request,
        &json!({"agent": "demo", "input": "hi", "tools": ["http"]}),
    ))
    .await;
    refused.assert_problem_at("invalid_field", "/tools");
    assert!(!refused.text().contains("calculator"), "{}", refused.text());
}

async fn sessions_show_the_prompt_and_the_response_format_of_a_configured_agent(service: &Service) {
    let format = json!({"type": "json_schema", "name": "answer", "schema": {"type": "object", "title": "Ours"}, "strict": false});
    let text = "driver = 'scripted'\nmodel = 'mock/echo'\nsystem_prompt = 'Ours: {{ variables.a }}.'\ntools = ['calculator']\n\
                script = [{ text = '{}' }]\n[response_format]\ntype = 'json_schema'\nname = 'answer'\n\
                schema = { type = 'object', title = 'Ours' }\n";
    std::fs::write(service.agents.path().join("shaped.toml"), text).unwrap();
    assert_eq!(reload(service).await, ["demo", "shaped"]);
    let (_, writer) = service.make_key("acme", &[Scope::RunsWrite]).await;
    let (_, reader) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let (_, stranger) = service.make_key("other", &[Scope::SessionsRead]).await;
    let request = service.request(Method::POST, "/v1/runs").bearer_auth(&writer);
    let body = json!({"agent": "shaped", "input": "hi", "variables": {"a": "b"}});
    let run = read(with_json(request, &body)).await.ok();
    assert_eq!(run["output_value"], json!({}), "{run:#}");
    let session = session_path(&run, "");
    let get = async |path: &str, key: &str| read(service.request(Method::GET, path).bearer_auth(key)).await;
    let agent = get("/v1/agents/shaped", &reader).await.ok();
    assert_eq!(agent["configured"], true);
    assert_eq!(
        agent.get("system_prompt").or(agent.get("response_format")),
        None,
        "{agent:#}"
    );
    let shown = get(&session, &reader).await.ok();
    let context = &shown["context_state"];
    assert_eq!(context["system_prompt"], "Ours: {{ variables.a }}.", "{context:#}");
    assert_eq!(context["response_format"], format);
    assert!(!shown.to_string().contains("calculator"), "{shown:#}");
    get(&session, &stranger).await.assert_problem("session_not_found");
}

async fn a_name_like_the_given_one_is_suggested_if_the_caller_may_use_it(service: &Service) {
    service.put_agent("supporter", json!({"model": "mock/echo"})).await;
    for (name, detail) in [
        (
            "suporter",
            r#"there is no agent named "suporter", did you mean "supporter"?"#,
        ),
        ("dmo", r#"there is no agent named "dmo", did you mean "demo"?"#),
        ("zzz", r#"there is no agent named "zzz""#),
    ] {
        let shown = service.try_get(&format!("/v1/agents/{name}")).await;
        shown.assert_problem("agent_not_found");
        assert_eq!(shown.json()["detail"], detail);
        let refused = service.post("/v1/runs", &json!({"agent": name, "input": "hi"})).await;
        refused.assert_problem("agent_not_found");
        assert_eq!(refused.json()["detail"], detail);
    }
    let (_, other) = service
        .make_key("other", &[Scope::RunsWrite, Scope::SessionsRead])
        .await;
    let narrow = RunLimits {
        agents: vec!["demo".parse().unwrap()],
        ..RunLimits::default()
    };
    let (_, narrow) = service.make_key_with("default", &[Scope::RunsWrite], narrow).await;
    for key in [other, narrow] {
        let request = service.request(Method::POST, "/v1/runs").bearer_auth(&key);
        let refused = read(with_json(request, &json!({"agent": "suporter", "input": "hi"}))).await;
        refused.assert_problem("agent_not_found");
        assert_eq!(refused.json()["detail"], r#"there is no agent named "suporter""#);
    }
}

async fn large_agents_are_listed_a_few_at_a_time(service: &Service) {
    let prompt = "x".repeat(900_000);
    let mut names: Vec<_> = (0..5).map(|number| format!("big{number}")).collect();
    for name in &names {
        let body = json!({"model": "mock/echo", "system_prompt": prompt});
        service.put_agent(name, body).await;
    }
    // The configured one.
    names.push("demo".to_owned());
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let answer = service.try_get(&format!("/v1/agents?limit=200{cursor}")).await;
        assert!(answer.body.len() < 2 * PAGE, "{} bytes", answer.body.len());
        let page = answer.ok();
        let data = page["data"].as_array().unwrap();
        seen.extend(data.iter().map(|agent| agent["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    seen.retain(|name| name != "echo");
    assert_eq!(seen, names);
}
