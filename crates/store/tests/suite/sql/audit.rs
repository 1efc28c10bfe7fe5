//! The audit log: one entry for each act that is done, in one chain that nobody can change
//! unnoticed.

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::{Value, json};
use store::audit::{
    Act, Actor, AuditAction, AuditChain, AuditEntry, AuditFault, AuditHead, AuditRecord, ChainCheck, Requester,
};
use store::retention::SessionRemoval;
use store::token_revocations::TokenRevocation;
use test_support::databases::Engine;
use test_support::drafts::{now, requester, tenant};
use values::ids::{ApiKeyId, DeliveryId, SessionId, UuidV7Source};
use values::session::Hash;

use super::console_sessions::console_session;
use super::keys::key;
use crate::fixtures::Fixture;

on_both_engines!(
    an_act_has_one_entry_and_one_that_is_not_done_has_none,
    a_removal_has_one_entry_however_many_transactions_it_takes,
    an_entry_shows_who_did_what_to_what,
    acts_at_the_same_time_make_one_chain,
    details_are_bounded,
    entries_of_a_newer_version_are_checked_as_well,
    a_removal_that_does_not_happen_has_no_entry,
    entries_are_immutable,
    changes_behind_the_back_of_the_store_are_found,
);

fn acme() -> AuditChain {
    AuditChain::Tenant(tenant("acme"))
}

async fn records(fixture: &Fixture, chain: &AuditChain) -> Vec<AuditRecord> {
    fixture.store.audit_read(chain, 1, 1_000).await.unwrap()
}

async fn entries(fixture: &Fixture, chain: &AuditChain) -> Vec<AuditEntry> {
    let records = records(fixture, chain).await;
    let entries = records.iter().map(|record| serde_json::from_str(&record.entry));
    entries.collect::<Result<_, _>>().unwrap()
}

async fn actions(fixture: &Fixture, chain: &AuditChain) -> Vec<Value> {
    let entries = entries(fixture, chain).await;
    entries.iter().map(|entry| json!(entry.action)).collect()
}

/// Checks a chain as it is stored.
async fn check(fixture: &Fixture, chain: &AuditChain) -> Result<AuditHead, AuditFault> {
    let mut check = ChainCheck::new(fixture.store.audit_head(chain).await.unwrap());
    for record in records(fixture, chain).await {
        check.add(&record)?;
    }
    check.end()
}

async fn insert(fixture: &Fixture, target: &str) {
    let act = Act::of_service(&requester(), AuditAction::SweepStarted, target);
    fixture.store.audit_insert(&act).await.unwrap();
}

async fn an_act_has_one_entry_and_one_that_is_not_done_has_none(fixture: Fixture) {
    let (store, by, acme_id) = (&fixture.store, requester(), tenant("acme"));
    let key = key("1");
    store.key_insert(&key, &by).await.unwrap();
    // The same key again, which the store refuses.
    store.key_insert(&key, &by).await.unwrap_err();
    let session = console_session(&key, "cookie", TimeDelta::hours(1));
    store.console_session_insert(&session, 10, &by).await.unwrap();
    for _ in 0..2 {
        store.console_session_delete(&session, &by).await.unwrap();
    }
    assert!(store.key_revoke(key.key_id, &by).await.unwrap());
    assert!(!store.key_revoke(key.key_id, &by).await.unwrap());
    let unknown = ApiKeyId::generate(&UuidV7Source);
    assert!(!store.key_revoke(unknown, &by).await.unwrap());
    let agent = serde_json::from_value(json!({"name": "mine", "model": "demo/demo"})).unwrap();
    for _ in 0..2 {
        store.agent_put(&acme_id, &agent, &by).await.unwrap();
    }
    assert!(!store.agent_delete(&acme_id, "other", &by).await.unwrap());
    assert!(store.agent_delete(&acme_id, "mine", &by).await.unwrap());
    let missing = SessionId::generate(&UuidV7Source);
    let removal = store.session_remove(&acme_id, missing, true, &by).await.unwrap();
    assert_eq!(removal, SessionRemoval::NotFound);
    let missing = DeliveryId::generate(&UuidV7Source);
    store.delivery_restart(&acme_id, missing, None, &by).await.unwrap();
    let expected = json!([
        "key.created",
        "browser.logged_in",
        "browser.logged_out",
        "key.revoked",
        "agent.stored",
        "agent.deleted",
    ]);
    assert_eq!(json!(actions(&fixture, &acme()).await), expected);
    assert_eq!(store.audit_head(&AuditChain::Service).await.unwrap().number, 0);

    let revocation = TokenRevocation {
        issuer: "https://login.example.org".to_owned(),
        subject: "u".to_owned(),
        issued_before: now(),
    };
    store.token_revocation_put(&revocation, now(), &by).await.unwrap();
    assert_eq!(actions(&fixture, &AuditChain::Service).await, ["tokens.revoked"]);
    check(&fixture, &acme()).await.unwrap();
    let heads = store.audit_heads().await.unwrap();
    let chains: Vec<_> = heads.into_iter().map(|head| (head.chain, head.number)).collect();
    assert_eq!(chains, [(AuditChain::Service, 1), (acme(), 6)]);
}

async fn a_removal_has_one_entry_however_many_transactions_it_takes(fixture: Fixture) {
    let (store, by, chain) = (&fixture.store, requester(), AuditChain::Tenant(fixture.tenant.clone()));
    let root = fixture.publish(&fixture.commit(None, &["root"])).await;
    let mut tip = fixture.child(&root, &["1"]).await;
    // More than one transaction removes.
    for number in 2..=101 {
        tip = fixture.child(&tip, &[&number.to_string()]).await;
    }
    let id = root.head.session_id;
    let refused = store.session_remove(&fixture.tenant, id, false, &by).await.unwrap();
    assert_eq!(refused, SessionRemoval::HasDescendants);
    let removed = store.session_remove(&fixture.tenant, id, true, &by).await.unwrap();
    assert!(
        matches!(removed, SessionRemoval::Removed(figures) if figures.sessions == 102),
        "{removed:?}"
    );
    fixture.publish(&fixture.commit(None, &["other"])).await;
    let mut by = Some(&by);
    while store.tenant_remove(&fixture.tenant, 1, by).await.unwrap() > 0 {
        by = None;
    }
    // There is nothing left to remove.
    let again = store.tenant_remove(&fixture.tenant, 1, Some(&requester())).await;
    assert_eq!(again.unwrap(), 0);
    assert_eq!(actions(&fixture, &chain).await, ["session.removed", "tenant.removed"]);
    check(&fixture, &chain).await.unwrap();
}

async fn an_entry_shows_who_did_what_to_what(fixture: Fixture) {
    let (store, acme_id) = (&fixture.store, tenant("acme"));
    let key = key("1");
    let by = Requester {
        actor: Actor::Key {
            key_id: key.key_id,
            label: "Zürich's key".to_owned(),
        },
        at: now(),
        request_id: Some("r-1".to_owned()),
        address: Some("2001:db8::1".parse().unwrap()),
    };
    let agent = |prompt: &str| {
        let agent = json!({"name": "mine", "model": "demo/demo", "system_prompt": prompt});
        serde_json::from_value(agent).unwrap()
    };
    let first = store.agent_put(&acme_id, &agent("1"), &requester()).await.unwrap();
    let second = store.agent_put(&acme_id, &agent("2"), &by).await.unwrap();
    store.key_insert(&key, &by).await.unwrap();
    let entries = entries(&fixture, &acme()).await;
    let actor = json!({"kind": "key", "key_id": key.key_id, "label": "Zürich's key"});
    let shown: Vec<_> = entries.iter().map(|entry| json!(entry)).collect();
    assert_eq!(
        shown[1],
        json!({
            "number": 2, "at": by.at, "tenant": "acme", "actor": actor, "action": "agent.stored", "target": "mine",
            "details": {"before": first.version, "after": second.version},
            "request_id": "r-1", "address": "2001:db8::1",
        })
    );
    assert_eq!(
        shown[2]["details"],
        json!({"label": "Zürich's key", "scopes": ["runs:write", "admin"], "limits": {}})
    );
    assert_eq!(
        (&shown[0]["details"]["before"], &shown[0]["actor"]),
        (&Value::Null, &json!({"kind": "anonymous"}))
    );
    // Anybody can check the hash with BLAKE3 alone.
    let records = records(&fixture, &acme()).await;
    let mut hasher = blake3::Hasher::new();
    hasher.update(records[0].hash.as_bytes());
    hasher.update(records[1].entry.as_bytes());
    assert_eq!(records[1].hash.as_bytes(), hasher.finalize().as_bytes());
    assert_eq!(records[0].previous_hash.as_bytes(), &[0; 32]);
}

async fn acts_at_the_same_time_make_one_chain(fixture: Fixture) {
    let agent = serde_json::from_value(json!({"name": "mine", "model": "demo/demo"})).unwrap();
    let (acme_id, by) = (tenant("acme"), requester());
    let acts = (0..40).map(async |number| match number % 4 {
        0 => drop(fixture.store.agent_put(&acme_id, &agent, &by).await.unwrap()),
        1 => drop(fixture.store.agent_delete(&acme_id, "mine", &by).await.unwrap()),
        2 => fixture.store.key_insert(&key(&number.to_string()), &by).await.unwrap(),
        _ => drop(fixture.store.tenant_remove(&acme_id, 1, Some(&by)).await.unwrap()),
    });
    join_all(acts).await;
    check(&fixture, &acme()).await.unwrap();
    let entries = entries(&fixture, &acme()).await;
    let of = |action| entries.iter().filter(|entry| entry.action == action).count();
    assert_eq!(of(AuditAction::KeyCreated), 10);
    // Each deletion followed another definition, whose version it names.
    for pair in entries.windows(2) {
        if pair[1].action == AuditAction::AgentDeleted {
            assert!(pair[1].details["before"].is_string(), "{pair:?}");
        }
    }
}

async fn details_are_bounded(fixture: Fixture) {
    let act = Act::of_service(&requester(), AuditAction::SweepStarted, "x");
    for bytes in [8_000, 9_000] {
        let act = act.clone().with("name", "x").with("text", "x".repeat(bytes));
        fixture.store.audit_insert(&act).await.unwrap();
    }
    let entries = entries(&fixture, &AuditChain::Service).await;
    assert_eq!(entries[0].details["text"].as_str().unwrap().len(), 8_000);
    assert_eq!(
        json!(entries[1].details),
        json!({"name": "x", "text": {"omitted_bytes": 9_002}})
    );
}

async fn entries_are_immutable(fixture: Fixture) {
    insert(&fixture, "x").await;
    let mut changes = vec![
        "update audit_entries set entry = '{}'",
        "delete from audit_entries",
        "delete from audit_heads",
        "update audit_heads set number = 0",
    ];
    match fixture.database.engine {
        Engine::Postgres => changes.extend(["truncate audit_entries", "truncate audit_heads"]),
        Engine::Sqlite => changes.push("insert or replace into audit_entries select * from audit_entries"),
    }
    for change in changes {
        let error = fixture.database.execute(change).await.unwrap_err();
        let words = error.to_string();
        assert!(
            words.contains("are immutable") || words.contains("only grows"),
            "{words}"
        );
    }
    check(&fixture, &AuditChain::Service).await.unwrap();
}

async fn changes_behind_the_back_of_the_store_are_found(fixture: Fixture) {
    for target in ["a", "b", "c", "d"] {
        insert(&fixture, target).await;
    }
    check(&fixture, &AuditChain::Service).await.unwrap();
    let off = match fixture.database.engine {
        Engine::Postgres => "alter table audit_entries disable trigger all",
        Engine::Sqlite => "drop trigger audit_entries_are_immutable; drop trigger audit_entries_stay",
    };
    fixture.execute(off).await;
    for (change, expected, back) in [
        (
            "update audit_entries set entry = replace(entry, '\"b\"', '\"x\"') where number = 2",
            AuditFault::Changed(2),
            "update audit_entries set entry = replace(entry, '\"x\"', '\"b\"') where number = 2",
        ),
        (
            "update audit_entries set number = 40 where number = 3",
            AuditFault::Missing(3),
            "update audit_entries set number = 3 where number = 40",
        ),
        (
            "update audit_entries set previous_hash = hash where number = 3",
            AuditFault::Changed(3),
            "update audit_entries set previous_hash = (select e.hash from audit_entries e where e.number = 2) where number = 3",
        ),
        (
            "delete from audit_entries where number = 4",
            AuditFault::Cut { last: 3, head: 4 },
            "select 1",
        ),
    ] {
        fixture.execute(change).await;
        assert_eq!(
            check(&fixture, &AuditChain::Service).await.unwrap_err(),
            expected,
            "{change}"
        );
        fixture.execute(back).await;
    }
}

async fn entries_of_a_newer_version_are_checked_as_well(fixture: Fixture) {
    insert(&fixture, "x").await;
    let mut record = records(&fixture, &AuditChain::Service).await.remove(0);
    record.entry = json!({"number": 1, "action": "of.tomorrow", "actor": {"kind": "new"}, "more": 1}).to_string();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[0; 32]).update(record.entry.as_bytes());
    record.hash = Hash::from(*hasher.finalize().as_bytes());
    let head = AuditHead {
        chain: AuditChain::Service,
        number: 1,
        hash: record.hash,
    };
    let mut check = ChainCheck::new(head.clone());
    check.add(&record).unwrap();
    assert_eq!(check.end(), Ok(head));
}

async fn a_removal_that_does_not_happen_has_no_entry(fixture: Fixture) {
    let root = fixture.publish(&fixture.commit(None, &["root"])).await;
    fixture.child(&root, &["child"]).await;
    // Remains of other removals, which are swept with this one.
    let leave = "insert into unused_states (tenant, hash, is_held) select 'gone', hash, false from states";
    fixture.execute(leave).await;
    let id = root.head.session_id;
    let removal = fixture
        .store
        .session_remove(&fixture.tenant, id, false, &requester())
        .await;
    assert_eq!(removal.unwrap(), SessionRemoval::HasDescendants);
    let chain = AuditChain::Tenant(fixture.tenant.clone());
    assert_eq!(fixture.store.audit_head(&chain).await.unwrap().number, 0);
}
