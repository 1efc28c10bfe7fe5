//! Agents over HTTP.

use agent_runtime::limits::RunLimits;
use agent_runtime::store::Scope;
use reqwest::Method;
use serde_json::json;

use super::service::Service;
use crate::support::answer::{read, with_json};
use crate::support::hostile::{endless_agents, endless_prompt};

on_every_store! {
    an_agent_is_stored_shown_used_and_deleted,
    agents_are_listed_by_name_in_pages,
    configured_agents_are_shown_whole_to_administrators_alone,
    sessions_show_the_prompt_and_the_response_format_of_a_configured_agent,
    files_of_agents_are_read_again,
    a_reload_with_a_faulty_file_changes_nothing,
    a_reload_without_the_directory_changes_nothing,
    a_name_like_the_given_one_is_suggested_if_the_caller_may_use_it,
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
    refused.assert_problem("invalid_field");
    assert_eq!(refused.json()["errors"][0]["pointer"], "/tools");
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
    let session = format!("/v1/sessions/{}", run["session_id"].as_str().unwrap());
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

/// Reloads and returns the names of the agents of files.
async fn reload(service: &Service) -> Vec<String> {
    let reloaded = read(service.request(Method::POST, "/v1/configuration/reload"))
        .await
        .ok();
    let agents = reloaded["agents"].as_array().unwrap();
    assert!(
        agents
            .iter()
            .all(|agent| agent["version"].as_str().unwrap().len() == 64)
    );
    agents
        .iter()
        .map(|agent| agent["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn files_of_agents_are_read_again(service: &Service) {
    let before = service.get("/v1/agents/demo").await;
    let accepted = service.run_with(json!({"agent": "demo", "input": "hi"})).await;
    let write = |name: &str, text: &str| std::fs::write(service.agents.path().join(name), text).unwrap();
    write("added.toml", "model = 'mock/echo'\nsystem_prompt = 'Be new.'");
    assert_eq!(reload(service).await, ["added", "demo"]);
    assert_eq!(
        service.get("/v1/agents/demo").await,
        before,
        "what did not change is as it was"
    );
    let result = service.run_with(json!({"agent": "added", "input": "hi"})).await;
    assert_eq!(result["output_text"], "echo: hi", "{result:#}");
    let asked = service.models.requests().pop().unwrap();
    assert_eq!(asked["messages"][0]["content"], "Be new.", "{asked:#}");

    let (agents, tenant) = (service.app.http_state().agents, "default".parse().unwrap());
    let looked_up = agents.lookup(&tenant, "demo").await.unwrap().unwrap();
    write("demo.toml", "model = 'mock/echo'\ndescription = 'changed'");
    std::fs::remove_file(service.agents.path().join("added.toml")).unwrap();
    assert_eq!(reload(service).await, ["demo"]);
    // A request that has looked it up before must not take it for a stored one, which is shown whole and kept already.
    assert!(agents.is_configured(&looked_up));
    let changed = service.get("/v1/agents/demo").await;
    assert_eq!(changed["description"], "changed");
    assert_ne!(changed["version"], before["version"]);
    service
        .try_get("/v1/agents/added")
        .await
        .assert_problem("agent_not_found");
    // In the end nobody can have looked it up, and nothing is kept of it.
    for number in 0..20 {
        write(
            "demo.toml",
            &format!("model = 'mock/echo'\ndescription = 'changed {number}'"),
        );
        reload(service).await;
    }
    assert!(!agents.is_configured(&looked_up));
    // What ran by the earlier version still says so.
    let run = service
        .get(&format!("/v1/runs/{}", accepted["run_id"].as_str().unwrap()))
        .await;
    assert_eq!(run["agent_version"], before["version"]);
}

async fn a_reload_with_a_faulty_file_changes_nothing(service: &Service) {
    let before = service.get("/v1/agents").await;
    let endless = format!("model = 'mock/echo'\nsystem_prompt = '{}'", endless_prompt(5_000));
    let schemas = endless_agents("mock/echo");
    let schemas = schemas.each_ref().map(|(text, _)| {
        let told = "bad.toml: the agent \"bad\" can't work: response_format: the schema can't be used: ";
        (text.as_str(), told)
    });
    let faulty = [
        ("model = 7", "bad.toml: line 1: `model`: "),
        (
            &endless,
            "bad.toml: the agent \"bad\" can't work: the system prompt can't be rendered: ",
        ),
        (
            "model = 'nobody/m'",
            "bad.toml: the agent \"bad\" can't work: no provider is named \"nobody\"",
        ),
        ("name = 'demo'\nmodel = 'mock/echo'", "both define the agent \"demo\""),
    ];
    for (text, told) in faulty.into_iter().chain(schemas) {
        std::fs::write(service.agents.path().join("bad.toml"), text).unwrap();
        // Of two files, the good one is not taken over either.
        std::fs::write(service.agents.path().join("good.toml"), "model = 'mock/echo'").unwrap();
        let answer = read(service.request(Method::POST, "/v1/configuration/reload")).await;
        answer.assert_problem("agent_files_invalid");
        let detail = &answer.json()["detail"];
        assert!(detail.as_str().unwrap().contains(told), "{detail}");
        assert_eq!(service.get("/v1/agents").await, before);
    }
    let (_, key) = service
        .make_key("default", &[Scope::RunsWrite, Scope::SessionsRead])
        .await;
    let refused = service
        .request(Method::POST, "/v1/configuration/reload")
        .bearer_auth(&key);
    read(refused).await.assert_problem("missing_scope");
}

async fn a_reload_without_the_directory_changes_nothing(service: &Service) {
    let folder = service.agents.path();
    std::fs::write(folder.join("added.toml"), "model = 'mock/echo'").unwrap();
    assert_eq!(reload(service).await, ["added", "demo"]);
    let before = service.get("/v1/agents").await;
    let refused = async || {
        let answer = read(service.request(Method::POST, "/v1/configuration/reload")).await;
        answer.assert_problem("agent_files_invalid");
        let detail = answer.json()["detail"].to_string();
        assert!(detail.contains(folder.to_str().unwrap()), "{detail}");
        assert_eq!(service.get("/v1/agents").await, before);
    };
    let away = folder.with_extension("away");
    std::fs::rename(folder, &away).unwrap();
    refused().await;
    std::fs::write(folder, "no directory").unwrap();
    refused().await;
    std::fs::remove_file(folder).unwrap();
    // So is the place of a volume that is not mounted.
    std::fs::create_dir(folder).unwrap();
    refused().await;
    std::fs::remove_dir(folder).unwrap();
    std::fs::rename(&away, folder).unwrap();
    assert_eq!(reload(service).await, ["added", "demo"]);
    // Whoever wants no agents leaves something else there.
    std::fs::write(folder.join(".none"), "").unwrap();
    std::fs::remove_file(folder.join("added.toml")).unwrap();
    assert_eq!(reload(service).await, ["demo"]);
    std::fs::remove_file(folder.join(".none")).unwrap();
    assert_eq!(reload(service).await, ["demo"]);
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
