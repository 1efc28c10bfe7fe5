//! Definitions are immutable versions under names that can be deleted.

use std::cmp::Reverse;
use std::sync::Arc;

use agent::definition::AgentDefinition;
use chrono::TimeDelta;
use serde_json::json;
use store::agents::{AgentPage, AgentRecord};
use test_support::drafts::{now, requester, requester_at, tenant};
use values::session::hash_definition;

use crate::fixtures::Fixture;

on_both_engines!(
    an_equal_definition_is_stored_once,
    a_deleted_name_leaves_its_versions,
    agents_list_by_name,
    a_version_can_be_stored_without_a_name,
    versions_list_from_the_newest,
);

fn definition(name: &str, prompt: &str) -> AgentDefinition {
    let value = json!({"name": name, "model": "scripted/demo", "system_prompt": prompt, "metadata": {"nul": "\u{0}", "f": 0.1}});
    serde_json::from_value(value).unwrap()
}

pub(crate) async fn put_one(fixture: &Fixture) {
    fixture
        .store
        .agent_put(&fixture.tenant, &definition("one", ""), &requester())
        .await
        .unwrap();
}

async fn an_equal_definition_is_stored_once(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let first = store
        .agent_put(tenant_id, &definition("a", "1"), &requester())
        .await
        .unwrap();
    let second = store
        .agent_put(tenant_id, &definition("a", "2"), &requester())
        .await
        .unwrap();
    assert_eq!(store.agent_lookup(tenant_id, "a").await.unwrap(), Some(second.clone()));
    let again = store
        .agent_put(tenant_id, &definition("a", "1"), &requester())
        .await
        .unwrap();
    assert_eq!(again, first, "with the time of the first");
    assert_eq!(fixture.count("agent_versions").await, 2);
    assert_eq!(store.agent_lookup(tenant_id, "a").await.unwrap(), Some(first.clone()));
    assert_eq!(
        store.agent_version_lookup(tenant_id, second.version).await.unwrap(),
        Some(second)
    );
    assert_eq!(*first.definition, definition("a", "1"));
    assert_eq!(store.agent_lookup(&tenant("other"), "a").await.unwrap(), None);
    assert_eq!(
        store
            .agent_version_lookup(&tenant("other"), first.version)
            .await
            .unwrap(),
        None
    );
    assert_eq!(store.agent_lookup(tenant_id, "a\u{0}").await.unwrap(), None);
}

async fn a_deleted_name_leaves_its_versions(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let put = store
        .agent_put(tenant_id, &definition("a", ""), &requester())
        .await
        .unwrap();
    assert!(!store.agent_delete(&tenant("other"), "a", &requester()).await.unwrap());
    assert!(store.agent_delete(tenant_id, "a", &requester()).await.unwrap());
    assert!(!store.agent_delete(tenant_id, "a", &requester()).await.unwrap());
    assert!(!store.agent_delete(tenant_id, "\u{0}", &requester()).await.unwrap());
    assert_eq!(store.agent_lookup(tenant_id, "a").await.unwrap(), None);
    assert_eq!(
        store.agent_version_lookup(tenant_id, put.version).await.unwrap(),
        Some(put)
    );
}

async fn agents_list_by_name(fixture: Fixture) {
    let names = ["B", "a", "a-b", "a.b", "a_b", "b", "zz"];
    for name in names.iter().rev() {
        fixture
            .store
            .agent_put(&fixture.tenant, &definition(name, ""), &requester())
            .await
            .unwrap();
    }
    // All on one page, three on a page, and one on each, since a page ends with the agent that
    // reaches its bytes.
    for (limit, bytes, pages) in [(7, usize::MAX, 1), (3, usize::MAX, 3), (3, 1, 7)] {
        let page = |after| AgentPage { after, limit, bytes };
        let (mut after, mut seen, mut count) = (None, Vec::new(), 0);
        loop {
            let list = fixture.store.agent_list(&fixture.tenant, &page(after)).await.unwrap();
            seen.extend(list.agents.iter().map(|agent| agent.definition.name.clone()));
            count += 1;
            if list.is_last {
                break;
            }
            after = seen.last().cloned();
        }
        assert_eq!((&seen[..], count), (&names.map(str::to_owned)[..], pages));
        let none = fixture.store.agent_list(&tenant("other"), &page(None)).await.unwrap();
        assert_eq!((none.agents, none.is_last), (Vec::new(), true));
    }
}

async fn a_version_can_be_stored_without_a_name(fixture: Fixture) {
    let definition = definition("file", "");
    let version = hash_definition(&values::json::canonical_bytes(&definition).unwrap());
    let record = AgentRecord {
        definition: Arc::new(definition),
        version,
        created_at: now(),
    };
    for _ in 0..2 {
        fixture.store.agent_version_put(&fixture.tenant, &record).await.unwrap();
    }
    assert_eq!(fixture.store.agent_lookup(&fixture.tenant, "file").await.unwrap(), None);
    assert_eq!(
        fixture
            .store
            .agent_version_lookup(&fixture.tenant, version)
            .await
            .unwrap(),
        Some(record)
    );
}

async fn versions_list_from_the_newest(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let at = now();
    let mut stored = Vec::new();
    // The last two are of the same time, and equal definitions are stored once.
    for (prompt, seconds) in [("1", 0), ("2", 1), ("3", 2), ("4", 2), ("1", 3)] {
        let time = at + TimeDelta::seconds(seconds);
        stored.push(
            store
                .agent_put(tenant_id, &definition("a", prompt), &requester_at(time))
                .await
                .unwrap(),
        );
    }
    let again = stored.pop();
    assert_eq!(again.as_ref(), stored.first());
    stored.sort_by_key(|record| Reverse((record.created_at, *record.version.as_bytes())));
    store
        .agent_put(tenant_id, &definition("b", ""), &requester_at(at))
        .await
        .unwrap();
    assert!(store.agent_delete(tenant_id, "a", &requester()).await.unwrap());
    for (limit, bytes, pages) in [(4, usize::MAX, 1), (3, usize::MAX, 2), (3, 1, 4)] {
        let page = |after| AgentPage { after, limit, bytes };
        let (mut after, mut seen, mut count) = (None, Vec::new(), 0);
        loop {
            let list = store.agent_version_list(tenant_id, "a", &page(after)).await.unwrap();
            seen.extend(list.agents);
            count += 1;
            if list.is_last {
                break;
            }
            after = seen.last().map(|record| record.version);
        }
        assert_eq!((&seen, count), (&stored, pages));
    }
    let page = AgentPage {
        after: None,
        limit: 9,
        bytes: usize::MAX,
    };
    for (tenant_id, name) in [(&tenant("other"), "a"), (tenant_id, "c"), (tenant_id, "a\u{0}")] {
        let none = store.agent_version_list(tenant_id, name, &page).await.unwrap();
        assert_eq!((none.agents, none.is_last), (Vec::new(), true), "{name:?}");
    }
}
