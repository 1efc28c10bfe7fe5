//! Keys are found by the hash of their secret, revoked ones too.

use store::keys::{ApiKeyRecord, Scope};
use test_support::drafts::{now, requester, requester_at, tenant};
use values::ids::{ApiKeyId, UuidV7Source};
use values::limits::RunLimits;
use values::session::hash_segment;

use crate::fixtures::Fixture;

on_both_engines!(keys_are_stored_and_revoked);

pub(super) fn key(secret: &str) -> ApiKeyRecord {
    ApiKeyRecord {
        key_id: ApiKeyId::generate(&UuidV7Source),
        secret_hash: hash_segment(secret.as_bytes()),
        tenant: tenant("acme"),
        scopes: vec![Scope::RunsWrite, Scope::Admin],
        label: "Zürich's key".to_owned(),
        limits: RunLimits::default(),
        created_at: now(),
        revoked_at: None,
    }
}

async fn keys_are_stored_and_revoked(fixture: Fixture) {
    let store = &fixture.store;
    assert!(!store.key_exists().await.unwrap());
    let (first, second) = (
        key("1"),
        ApiKeyRecord {
            scopes: Vec::new(),
            limits: RunLimits {
                max_steps: Some(3),
                models: vec!["openai/*".parse().unwrap()],
                ..RunLimits::default()
            },
            ..key("2")
        },
    );
    store.key_insert(&first, &requester()).await.unwrap();
    store.key_insert(&second, &requester()).await.unwrap();
    assert!(store.key_insert(&first, &requester()).await.is_err());
    assert!(store.key_exists().await.unwrap());
    assert_eq!(store.key_lookup(first.secret_hash).await.unwrap(), Some(first.clone()));
    assert_eq!(store.key_lookup(hash_segment(b"3")).await.unwrap(), None);
    assert_eq!(store.key_list().await.unwrap(), [second.clone(), first.clone()]);
    let time = now();
    assert!(store.key_revoke(first.key_id, &requester_at(time)).await.unwrap());
    assert!(!store.key_revoke(first.key_id, &requester()).await.unwrap());
    assert!(!store.key_revoke(key("3").key_id, &requester()).await.unwrap());
    let revoked = ApiKeyRecord {
        revoked_at: Some(time),
        ..first
    };
    assert_eq!(store.key_lookup(revoked.secret_hash).await.unwrap(), Some(revoked));
    assert!(store.key_exists().await.unwrap());
}
