//! The cache of bundles: hot sessions are continued without reading, and cold ones are loaded once.

use std::sync::Arc;

use agent::compilers::{CompilerConfig, Traces};
use agent::ports::ModelRequest;
use agent::state::{AgentContext, AgentState, MessageStore, Messages};
use chrono::TimeDelta;
use futures_util::future::join_all;
use models::ProviderKind;
use serde_json::json;
use store::Sessions;
use store::retention::SessionRemoval;
use test_support::clock::MovableClock;
use test_support::drafts::{now, object, requester, session_id, tenant, user};
use test_support::model_request::model_request;
use test_support::wires::{encode_request, settings};
use values::clock::SystemClock;
use values::ids::{AgentId, ExecutionId, MessageId, StepId, UuidV7Source};
use values::json::Value;
use values::message::{ContentPart, Message, MessageTags, Role};
use values::session::History;

use super::fixtures::Fixture;

on_both_engines!(
    a_hot_session_needs_no_database,
    a_cold_session_is_loaded_once,
    a_cache_of_no_bytes_is_off,
    a_small_cache_stays_small,
    a_bundle_weighs_what_it_takes_in_memory,
    a_title_weighs_its_text,
    a_run_adds_nothing_to_a_cached_session,
    a_session_that_another_process_removes_is_cached_for_seconds_only,
    a_session_that_this_process_removes_is_gone_at_once,
    a_removal_makes_no_other_tenant_ask_again,
);

async fn a_hot_session_needs_no_database(fixture: Fixture) {
    let sessions = Sessions::new(Arc::clone(&fixture.store), 1 << 20, Arc::new(SystemClock));
    let root = sessions.commit(&fixture.commit(None, &["root"])).await.unwrap();
    let child = sessions.commit(&fixture.commit(Some(&root), &["child"])).await.unwrap();
    fixture
        .execute("delete from sessions; delete from history_segments")
        .await;
    for bundle in [&root, &child] {
        let hot = sessions
            .bundle(&fixture.tenant, bundle.head.session_id)
            .await
            .unwrap()
            .unwrap();
        assert!(Arc::ptr_eq(&hot, bundle));
    }
    assert_eq!(
        sessions.bundle(&tenant("other"), root.head.session_id).await.unwrap(),
        None
    );
    assert_eq!(sessions.bundle(&fixture.tenant, session_id()).await.unwrap(), None);
}

async fn a_cold_session_is_loaded_once(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let sessions = Sessions::new(Arc::clone(&fixture.store), 1 << 20, Arc::new(SystemClock));
    let loads = join_all((0..20).map(|_| sessions.bundle(&fixture.tenant, root.head.session_id))).await;
    let loads: Vec<_> = loads.into_iter().map(|load| load.unwrap().unwrap()).collect();
    assert_eq!(loads[0], root);
    assert!(loads.iter().all(|load| Arc::ptr_eq(load, &loads[0])));
}

async fn a_cache_of_no_bytes_is_off(fixture: Fixture) {
    let sessions = Sessions::new(Arc::clone(&fixture.store), 0, Arc::new(SystemClock));
    let root = sessions.commit(&fixture.commit(None, &["root"])).await.unwrap();
    assert_eq!(
        sessions
            .bundle(&fixture.tenant, root.head.session_id)
            .await
            .unwrap()
            .as_ref(),
        Some(&root)
    );
    fixture.execute("delete from sessions").await;
    assert_eq!(
        sessions.bundle(&fixture.tenant, root.head.session_id).await.unwrap(),
        None
    );
}

async fn a_small_cache_stays_small(fixture: Fixture) {
    let sessions = Sessions::new(Arc::clone(&fixture.store), 64 << 10, Arc::new(SystemClock));
    let text = "x".repeat(20 << 10);
    let mut tip = sessions.commit(&fixture.commit(None, &[&text])).await.unwrap();
    let first = tip.head.session_id;
    for _ in 0..8 {
        tip = sessions.commit(&fixture.commit(Some(&tip), &[&text])).await.unwrap();
    }
    assert!(sessions.cached_bytes() <= 64 << 10, "{}", sessions.cached_bytes());
    assert_eq!(
        sessions
            .bundle(&fixture.tenant, first)
            .await
            .unwrap()
            .unwrap()
            .history
            .len(),
        1
    );
    assert_eq!(
        sessions
            .bundle(&fixture.tenant, tip.head.session_id)
            .await
            .unwrap()
            .unwrap(),
        tip
    );
}

async fn a_bundle_weighs_what_it_takes_in_memory(fixture: Fixture) {
    const OBJECTS: usize = 2_000;
    const PARTS: usize = 1_000;
    const METADATA: usize = 500;
    // A map's node has room for 11 entries.
    let object_bytes = size_of::<Value>() + 11 * (size_of::<String>() + size_of::<Value>());
    let at_least = ((OBJECTS + METADATA) * object_bytes + PARTS * size_of::<ContentPart>()) as u64;
    let small = |count: usize| json!({"objects": vec![json!({"a": 0}); count]});
    let mut commit = fixture.commit(None, &[]);
    commit.draft.environment = Arc::new(serde_json::from_value(json!({"variables": small(OBJECTS)})).unwrap());
    commit.draft.context.metadata = object(small(METADATA));
    let mut message = (*user("hi")).clone();
    message.content = vec![ContentPart::text("x"); PARTS];
    commit.draft.history = commit.draft.history.with_message(Arc::new(message));
    let text = serde_json::to_vec(&*commit.draft.environment).unwrap();
    assert!(text.len() as u64 * 50 < at_least);

    let sessions = Sessions::new(Arc::clone(&fixture.store), 64 << 20, Arc::new(SystemClock));
    let root = sessions.commit(&commit).await.unwrap();
    let of_one = sessions.cached_bytes();
    assert!((at_least..=2 * at_least).contains(&of_one), "{of_one}, {at_least}");
    let child = sessions.commit(&fixture.commit(Some(&root), &["more"])).await.unwrap();
    let of_two = sessions.cached_bytes();
    assert!((2 * of_one..2 * of_one + 4096).contains(&of_two), "{of_two}, {of_one}");

    let loaded = Sessions::new(Arc::clone(&fixture.store), 64 << 20, Arc::new(SystemClock));
    assert!(
        loaded
            .bundle(&fixture.tenant, root.head.session_id)
            .await
            .unwrap()
            .is_some()
    );
    let of_one = loaded.cached_bytes();
    assert!((at_least..=2 * at_least).contains(&of_one), "{of_one}, {at_least}");

    // One that is larger than the cache is read all the same, and not kept.
    let tiny = Sessions::new(Arc::clone(&fixture.store), at_least / 2, Arc::new(SystemClock));
    assert_eq!(
        tiny.bundle(&fixture.tenant, child.head.session_id).await.unwrap(),
        Some(child)
    );
    assert_eq!(tiny.cached_bytes(), 0);
}

async fn a_title_weighs_its_text(fixture: Fixture) {
    // The most characters of a title, of four bytes each.
    let text = "\u{1f600}".repeat(160);
    let mut weights = Vec::new();
    for name in ["title", "other"] {
        let sessions = Sessions::new(Arc::clone(&fixture.store), 1 << 20, Arc::new(SystemClock));
        // The cache counts whole units of 1,024 bytes, so the sessions end at 16 places of a unit.
        for place in 0..16 {
            let mut commit = fixture.commit(None, &["hi"]);
            commit.draft.context.metadata = object(json!({name: text, "place": "x".repeat(64 * place)}));
            sessions.commit(&commit).await.unwrap();
        }
        weights.push(sessions.cached_bytes());
    }
    let titles = 16 * text.len() as u64;
    let counted = weights[0] - weights[1];
    assert!((titles - 1_024..titles + 2_048).contains(&counted), "{weights:?}");
}

/// Returns the messages of the next request of a session.
fn next_request(history: &History) -> Messages {
    let context = AgentContext {
        store: MessageStore::new(history.clone()),
        ..AgentContext::default()
    };
    let state = AgentState::new(AgentId::generate(&UuidV7Source), now()).restored(now(), now(), 1, context);
    let state = state.start_execution(ExecutionId::generate(&UuidV7Source), now());
    state.messages(&*CompilerConfig::default().compiler(Traces::default()))
}

/// The cache weighs a session once, with what its run has computed from the messages.
async fn a_run_adds_nothing_to_a_cached_session(fixture: Fixture) {
    const TEXT: usize = 1 << 20;
    let answer = |text: &str| {
        let id = MessageId::generate(&UuidV7Source);
        let tags = MessageTags {
            step_id: Some(StepId::generate(&UuidV7Source)),
            ..MessageTags::default()
        };
        Arc::new(Message::text(id, Role::Assistant, text, now()).with_tags(tags))
    };
    let long = "x".repeat(TEXT);
    let turns = vec![user(&long), answer("one"), user("more"), answer("two")];
    let mut commit = fixture.commit_of(None, turns);
    let responses = settings("p", ProviderKind::OpenAiResponses);
    let other = settings("p", ProviderKind::Anthropic);
    let request = |messages: &Messages| ModelRequest {
        messages: messages.clone(),
        ..model_request(Vec::new())
    };
    let messages = next_request(&commit.draft.history);
    let _ = encode_request(&request(&messages), &responses, true);
    let prefix = messages.prefix().unwrap();
    assert!(prefix.bytes() > TEXT);
    commit.draft.history = commit.draft.history.with_request_prefix(Arc::clone(prefix));

    let sessions = Sessions::new(Arc::clone(&fixture.store), 64 << 20, Arc::new(SystemClock));
    let session = sessions.commit(&commit).await.unwrap();
    let counted = sessions.cached_bytes();
    // A run of another model computes more, before any other message joins the prefix.
    let messages = next_request(&session.history);
    let _ = encode_request(&request(&messages), &other, true);
    assert!(messages.prefix().unwrap().bytes() > 2 * TEXT);
    let cached = sessions.bundle(&fixture.tenant, session.head.session_id).await.unwrap();
    let cached = cached.unwrap();
    assert!(Arc::ptr_eq(&cached, &session));
    let taken = (TEXT + cached.history.request_prefix().unwrap().bytes()) as u64;
    assert!((taken..taken + taken / 4).contains(&counted), "{taken}, {counted}");
}

async fn a_session_that_another_process_removes_is_cached_for_seconds_only(fixture: Fixture) {
    let clock = Arc::new(MovableClock::default());
    let sessions = Sessions::new(Arc::clone(&fixture.store), 1 << 20, Arc::clone(&clock) as _);
    let root = sessions.commit(&fixture.commit(None, &["root"])).await.unwrap();
    let other = sessions.commit(&fixture.commit(None, &["other"])).await.unwrap();
    let (root, id) = (root.head.session_id, other.head.session_id);
    fixture.remove(root).await;
    assert!(sessions.bundle(&fixture.tenant, root).await.unwrap().is_some());
    clock.advance(TimeDelta::seconds(5));
    assert_eq!(sessions.bundle(&fixture.tenant, root).await.unwrap(), None);
    // One that is still there is asked for and not loaded.
    let again = sessions.bundle(&fixture.tenant, id).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&again, &other));
    clock.advance(TimeDelta::seconds(-60));
    let again = sessions.bundle(&fixture.tenant, id).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&again, &other));
}

async fn a_session_that_this_process_removes_is_gone_at_once(fixture: Fixture) {
    let sessions = Sessions::new(Arc::clone(&fixture.store), 1 << 20, Arc::new(SystemClock));
    let root = sessions.commit(&fixture.commit(None, &["root"])).await.unwrap();
    let child = sessions.commit(&fixture.commit(Some(&root), &["child"])).await.unwrap();
    let other = sessions.commit(&fixture.commit(None, &["other"])).await.unwrap();
    let turn = sessions.removal_turn(&fixture.tenant).await;
    let removal = sessions
        .remove(turn, &fixture.tenant, root.head.session_id, true, &requester())
        .await
        .unwrap();
    assert!(matches!(removal, SessionRemoval::Removed(_)));
    for bundle in [root, child] {
        let id = bundle.head.session_id;
        assert_eq!(sessions.bundle(&fixture.tenant, id).await.unwrap(), None);
    }
    let again = sessions.bundle(&fixture.tenant, other.head.session_id).await.unwrap();
    assert!(Arc::ptr_eq(&again.unwrap(), &other));
}

async fn a_removal_makes_no_other_tenant_ask_again(fixture: Fixture) {
    let sessions = Sessions::new(Arc::clone(&fixture.store), 1 << 20, Arc::<MovableClock>::default());
    let root = sessions.commit(&fixture.commit(None, &["root"])).await.unwrap();
    let others = tenant("other");
    let mut commit = fixture.commit(None, &["other"]);
    commit.tenant = others.clone();
    let other = sessions.commit(&commit).await.unwrap().head.session_id;
    let turn = sessions.removal_turn(&others).await;
    let removal = sessions
        .remove(turn, &others, other, false, &requester())
        .await
        .unwrap();
    assert!(matches!(removal, SessionRemoval::Removed(_)));
    assert_eq!(sessions.bundle(&others, other).await.unwrap(), None);
    // A read of the store now finds nothing.
    fixture.execute("delete from sessions").await;
    let hot = sessions.bundle(&fixture.tenant, root.head.session_id).await.unwrap();
    assert!(hot.is_some_and(|hot| Arc::ptr_eq(&hot, &root)));
}
