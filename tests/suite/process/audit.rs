//! The audit log of commands, its check, and the reload of agents at all processes.

use serde_json::{Value, json};
use test_support::databases::{Engine, TestDatabase};
use test_support::wait::until;

use super::binary::Home;
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::text::assert_contains;

on_every_store!(each_administrative_command_writes_one_entry);

/// Lists the acts of a tenant, or of the service.
async fn listed(home: &Home, of: &[&str]) -> Vec<Value> {
    let printed = home.succeed(&[&["audit", "list", "--json"], of].concat()).await;
    serde_json::from_str(&printed).unwrap()
}

async fn count(home: &Home) -> usize {
    listed(home, &[]).await.len() + listed(home, &["--tenant", "acme"]).await.len()
}

async fn each_administrative_command_writes_one_entry(database: TestDatabase) {
    let home = Home::new(database.url());
    home.write(
        "agent-runtime.toml",
        "[auth.issuers.login]\nissuer = \"https://login.example.org\"\naudience = [\"x\"]\ntenant = \"acme\"\n",
    );
    home.succeed(&["keys", "create", "--tenant", "other"]).await;
    home.succeed(&["keys", "create", "--tenant", "acme", "--label", "first"])
        .await;
    let acts = listed(&home, &["--tenant", "acme"]).await;
    let [created] = &acts[..] else { panic!("{acts:?}") };
    assert_eq!(
        (&created["action"], &created["actor"]["kind"]),
        (&json!("key.created"), &json!("command"))
    );
    assert_eq!(created["details"]["label"], "first");
    let key_id = created["target"].as_str().unwrap();
    for (command, action) in [
        (vec!["keys", "revoke", key_id], "key.revoked"),
        (
            vec!["tokens", "revoke", "--issuer", "login", "--sub", "u"],
            "tokens.revoked",
        ),
        (vec!["gc"], "sweep.started"),
        (vec!["after-restore"], "restore.finished"),
        (vec!["tenants", "delete", "acme", "--yes"], "tenant.removed"),
    ] {
        let before = count(&home).await;
        home.succeed(&command).await;
        assert_eq!(count(&home).await, before + 1, "{command:?}");
        let acts = [listed(&home, &["--tenant", "acme"]).await, listed(&home, &[]).await];
        let is_newest = acts
            .iter()
            .any(|acts| acts.first().is_some_and(|act| act["action"] == action));
        assert!(is_newest, "{action}: {acts:?}");
    }
    // What only reads, or changes nothing, has none.
    let before = count(&home).await;
    home.succeed(&["gc", "--dry-run"]).await;
    home.succeed(&["keys", "list"]).await;
    home.fail(&["keys", "revoke", key_id]).await;
    home.fail(&["tenants", "delete", "acme", "--yes"]).await;
    assert_eq!(count(&home).await, before);

    let exported = home.succeed(&["audit", "export", "--tenant", "acme"]).await;
    let records: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 3);
    assert_eq!(records[2]["previous_hash"], records[1]["hash"]);
    let verified = home.succeed(&["audit", "verify"]).await;
    assert_contains!(verified, "tenant acme: 3 acts, the last has the hash");
    let off = match database.engine {
        Engine::Postgres => "alter table audit_entries disable trigger all",
        Engine::Sqlite => "drop trigger audit_entries_are_immutable",
    };
    database.execute(off).await.unwrap();
    let change =
        "update audit_entries set entry = replace(entry, 'first', 'worst') where chain = 'acme' and number = 1";
    database.execute(change).await.unwrap();
    let ended = home.run(&["audit", "verify"]).await;
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert_contains!(ended.stdout, "tenant acme: entry 1 does not have its hash");
    // The other chains are checked as well.
    assert_contains!(ended.stdout, "the service: 3 acts");
    let added = "insert into audit_entries (chain, number, entry, previous_hash, hash)
        select 'forged', 1, entry, previous_hash, hash from audit_entries where chain = 'other' and number = 1";
    database.execute(added).await.unwrap();
    let ended = home.run(&["audit", "verify"]).await;
    assert_contains!(
        ended.stdout,
        "tenant forged: there is an entry 1, and the head of the chain does not know it"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_reaches_all_processes() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let homes = [Home::new(database.url()), Home::new(database.url())];
    let write = |description: &str| {
        for home in &homes {
            let agent = format!("model = 'demo/demo'\ndescription = '{description}'\n");
            home.write("config/agents/mine.toml", &agent);
        }
    };
    write("first");
    let (here, there) = (Service::start(&homes[0]).await, Service::start(&homes[1]).await);
    let shown = async |service: &Service| service.get("/v1/agents/mine").await["description"].clone();
    assert_eq!(shown(&there).await, "first");
    let follows = "another process has read the files of agents again";
    let reload = async |asked: &Service, other: &Service, description: &str| {
        write(description);
        asked.post("/v1/configuration/reload", json!(null)).await;
        assert_eq!(shown(asked).await, description);
        until("the other process does not follow", async || {
            shown(other).await == description
        })
        .await;
    };
    reload(&here, &there, "second").await;
    reload(&there, &here, "third").await;
    // Each followed the other one once, and never itself.
    for service in [&here, &there] {
        assert_eq!(service.log().matches(follows).count(), 1, "{}", service.log());
    }
    here.stop().await;
    there.stop().await;
}
