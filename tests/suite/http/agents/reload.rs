//! The files of agents are read again.

use reqwest::Method;
use serde_json::json;
use store::keys::Scope;

use crate::http::service::Service;
use crate::support::answer::read;
use crate::support::hostile::{endless_agents, endless_prompt};
use crate::support::test_app::run_path;

on_every_store! {
    files_of_agents_are_read_again,
    a_reload_with_a_faulty_file_changes_nothing,
    a_reload_without_the_directory_changes_nothing,
}

/// Reloads and returns the names of the agents of files.
pub(super) async fn reload(service: &Service) -> Vec<String> {
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

    let (agents, tenant) = (&service.app.runs.agents, "default".parse().unwrap());
    let looked_up = agents.lookup(&tenant, "demo").await.unwrap().unwrap();
    write("demo.toml", "model = 'mock/echo'\ndescription = 'changed'");
    std::fs::remove_file(service.agents.path().join("added.toml")).unwrap();
    assert_eq!(reload(service).await, ["demo"]);
    // A request that looked the agent up before must not take it for a stored one, which is shown
    // whole.
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
    let run = service.get(&run_path(&accepted, "")).await;
    assert_eq!(run["agent_version"], before["version"]);
}

async fn a_reload_with_a_faulty_file_changes_nothing(service: &Service) {
    let before = service.get("/v1/agents").await;
    let endless = format!("model = 'mock/echo'\nsystem_prompt = '{}'", endless_prompt(5_000));
    let schemas = endless_agents("mock/echo");
    let schemas = schemas.each_ref().map(|(text, _)| {
        let reported = "bad.toml: the agent \"bad\" can't work: response_format: the schema can't be used: ";
        (text.as_str(), reported)
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
    for (text, reported) in faulty.into_iter().chain(schemas) {
        std::fs::write(service.agents.path().join("bad.toml"), text).unwrap();
        // Of two files, the good one is not taken over either.
        std::fs::write(service.agents.path().join("good.toml"), "model = 'mock/echo'").unwrap();
        let answer = read(service.request(Method::POST, "/v1/configuration/reload")).await;
        answer.assert_problem("agent_files_invalid");
        let detail = &answer.json()["detail"];
        assert!(detail.as_str().unwrap().contains(reported), "{detail}");
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
    // A folder without agents must hold another file.
    std::fs::write(folder.join(".none"), "").unwrap();
    std::fs::remove_file(folder.join("added.toml")).unwrap();
    assert_eq!(reload(service).await, ["demo"]);
    std::fs::remove_file(folder.join(".none")).unwrap();
    assert_eq!(reload(service).await, ["demo"]);
}
