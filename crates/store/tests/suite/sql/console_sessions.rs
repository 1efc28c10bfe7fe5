//! Sessions of the console: found with the hash of their key, limited per key, extended, swept.

use chrono::TimeDelta;
use store::console_sessions::ConsoleSession;
use store::keys::ApiKeyRecord;
use store::retention::RemovalFigures;
use test_support::drafts::{now, requester};
use values::session::hash_segment;

use super::keys::key;
use super::retention::KEEP_ALL;
use crate::fixtures::Fixture;

on_both_engines!(
    sessions_of_the_console_are_found_extended_and_deleted,
    a_key_has_a_limited_number_of_sessions_of_the_console,
    expired_sessions_of_the_console_are_swept,
);

/// A session of the key that begins now and ends after `lifetime`.
pub(crate) fn console_session(key: &ApiKeyRecord, secret: &str, lifetime: TimeDelta) -> ConsoleSession {
    let created_at = now();
    ConsoleSession {
        secret_hash: hash_segment(format!("{} {secret}", key.key_id).as_bytes()),
        key_id: key.key_id,
        key_hash: key.secret_hash,
        tenant: key.tenant.clone(),
        created_at,
        expires_at: created_at + lifetime,
    }
}

async fn sessions_of_the_console_are_found_extended_and_deleted(fixture: Fixture) {
    let store = &fixture.store;
    let key = key("1");
    let session = console_session(&key, "a", TimeDelta::hours(2));
    let hash = session.secret_hash;
    // Without the row of its key there is no session.
    store.console_session_insert(&session, 10, &requester()).await.unwrap();
    assert_eq!(store.console_session_lookup(hash).await.unwrap(), None);
    store.key_insert(&key, &requester()).await.unwrap();
    assert_eq!(store.console_session_lookup(hash).await.unwrap(), Some(session.clone()));
    assert_eq!(store.console_session_lookup(key.secret_hash).await.unwrap(), None);
    let later = session.expires_at + TimeDelta::hours(1);
    // The later of two times counts.
    for expires_at in [later, session.expires_at] {
        store.console_session_extend(hash, expires_at).await.unwrap();
    }
    let extended = ConsoleSession {
        expires_at: later,
        ..session
    };
    let stored = extended.clone();
    assert_eq!(store.console_session_lookup(hash).await.unwrap(), Some(extended));
    for _ in 0..2 {
        store.console_session_delete(&stored, &requester()).await.unwrap();
        assert_eq!(store.console_session_lookup(hash).await.unwrap(), None);
    }
    store.console_session_extend(hash, later).await.unwrap();
    assert_eq!(fixture.count("console_sessions").await, 0);
}

async fn a_key_has_a_limited_number_of_sessions_of_the_console(fixture: Fixture) {
    let store = &fixture.store;
    let (busy, other) = (key("busy"), key("other"));
    for key in [&busy, &other] {
        store.key_insert(key, &requester()).await.unwrap();
    }
    let spared = console_session(&other, "a", TimeDelta::hours(1));
    store.console_session_insert(&spared, 3, &requester()).await.unwrap();
    let mut sessions = Vec::new();
    for number in 0..5 {
        let mut session = console_session(&busy, &number.to_string(), TimeDelta::hours(1));
        session.created_at += TimeDelta::seconds(number);
        store.console_session_insert(&session, 3, &requester()).await.unwrap();
        sessions.push(session);
    }
    assert_eq!(fixture.count("console_sessions").await, 4);
    for session in sessions[2..].iter().chain([&spared]) {
        let found = store.console_session_lookup(session.secret_hash).await.unwrap();
        assert_eq!(found.as_ref(), Some(session));
    }
}

async fn expired_sessions_of_the_console_are_swept(fixture: Fixture) {
    let store = &fixture.store;
    let key = key("1");
    store.key_insert(&key, &requester()).await.unwrap();
    let open = console_session(&key, "open", TimeDelta::hours(1));
    store.console_session_insert(&open, 10, &requester()).await.unwrap();
    for name in ["a", "b", "c"] {
        let expired = console_session(&key, name, TimeDelta::seconds(-1));
        store.console_session_insert(&expired, 10, &requester()).await.unwrap();
    }
    let planned = store.retention_plan(KEEP_ALL, now()).await.unwrap();
    assert_eq!(planned, fixture.sweep(KEEP_ALL, now(), 2).await);
    let sessions = RemovalFigures {
        console_sessions: 3,
        ..RemovalFigures::default()
    };
    assert_eq!(planned, sessions);
    assert_eq!(
        store.console_session_lookup(open.secret_hash).await.unwrap(),
        Some(open)
    );
}
