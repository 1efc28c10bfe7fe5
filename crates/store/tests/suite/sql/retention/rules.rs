//! The rules of a sweep, each with what it must retain.

use std::time::Duration;

use agent::record::RunStatus;
use chrono::TimeDelta;
use store::retention::{RemovalFigures, RetentionRules};
use test_support::databases::Engine;
use test_support::drafts::{now, run_end, run_id, run_record, session_id};
use values::ids::{DeliveryId, RunId, SessionId, UuidV7Source};

use super::{KEEP_ALL, aged, literal, older_than};
use crate::fixtures::Fixture;
use crate::sql::commit::subagents::family;

on_both_engines!(
    what_is_in_use_stays_at_any_age,
    a_subagent_in_use_retains_its_family,
    a_subagent_in_use_retains_nothing_else_of_its_thread,
    remains_of_runs_are_removed_long_after_their_end,
    a_run_that_published_nothing_goes_by_age,
    the_newest_sessions_of_a_thread_stay_and_the_others_are_removed,
    sessions_that_did_not_move_their_thread_are_removed_by_age,
    everything_is_retained_by_default,
);

/// Writes a time in the engine's own way.
fn time(fixture: &Fixture, hours: i64) -> String {
    let time = now() - TimeDelta::hours(hours);
    match fixture.database.engine {
        Engine::Postgres => format!("'{}'", time.to_rfc3339()),
        Engine::Sqlite => time.timestamp_micros().to_string(),
    }
}

fn bytes(fixture: &Fixture) -> &'static str {
    match fixture.database.engine {
        Engine::Postgres => r"'\x5b5d'",
        Engine::Sqlite => "x'5b5d'",
    }
}

/// Inserts a run that begins from the session into the queue, without the store; returns its id as
/// the engine writes it.
pub(crate) async fn queue(fixture: &Fixture, base: Option<SessionId>) -> String {
    let mut record = run_record(run_id(), session_id(), RunStatus::Failed);
    record.summary.base_session_id = base;
    let run_id = literal(fixture, record.summary.run_id.as_uuid());
    fixture
        .store
        .run_record(&fixture.tenant, &run_end(record, Vec::new()))
        .await
        .unwrap();
    let (tenant, at, payload) = (&fixture.tenant, time(fixture, 0), bytes(fixture));
    let sql = format!(
        "update runs set status = 'queued', completed_at = null where run_id = {run_id};
        insert into run_queue (run_id, turn, enqueued_at, priority, schema_version, encoding, tenant, request)
        values ({run_id}, 1, {at}, 0, 1, 0, '{tenant}', {payload})"
    );
    fixture.execute(&sql).await;
    run_id
}

/// Adds one row of each kind that runs leave, all of that age, and the failed run that left them;
/// returns its id as the engine writes it.
pub(crate) async fn add_remains(fixture: &Fixture, hours: i64) -> String {
    let mut record = run_record(RunId::generate(&UuidV7Source), session_id(), RunStatus::Failed);
    record.summary.completed_at = Some(now() - TimeDelta::hours(hours));
    let run_id = literal(fixture, record.summary.run_id.as_uuid());
    fixture
        .store
        .run_record(&fixture.tenant, &run_end(record, Vec::new()))
        .await
        .unwrap();
    queue(fixture, None).await;
    let delivery = literal(fixture, DeliveryId::generate(&UuidV7Source).as_uuid());
    let (tenant, at, payload) = (&fixture.tenant, time(fixture, hours), bytes(fixture));
    let sql = format!(
        "insert into run_events (run_id, first_sequence, last_sequence, created_at, schema_version, encoding, tenant, payload)
        values ({run_id}, 1, 2, {at}, 1, 0, '{tenant}', {payload});
        insert into run_journal (run_id, sequence, schema_version, encoding, tenant, scope, payload)
        values ({run_id}, 1, 1, 0, '{tenant}', '', {payload});
        insert into run_messages (run_id, position, received_at, schema_version, encoding, size, tenant, message_key, status, payload)
        values ({run_id}, 1, {at}, 1, 0, 1, '{tenant}', 'key', 'applied', {payload});
        insert into webhook_deliveries (
            delivery_id, run_id, created_at, schema_version, encoding, tenant, status, event, url, receiver, payload)
        values ({delivery}, {run_id}, {at}, 1, 0, '{tenant}', 'dead', 'run.completed', 'https://example.com', 'example.com', {payload});
        insert into idempotency_keys (resource_id, expires_at, tenant, key, digest)
        values ({run_id}, {at}, '{tenant}', '{key}', {payload})",
        key = RunId::generate(&UuidV7Source),
    );
    fixture.execute(&sql).await;
    run_id
}

async fn what_is_in_use_stays_at_any_age(fixture: Fixture) {
    let old = async |text| fixture.publish(&aged(fixture.commit(None, &[text]), now(), 50)).await;
    let (pointed, base, idle) = (old("pointed").await, old("base").await, old("idle").await);
    let young = fixture
        .publish(&aged(fixture.commit(Some(&idle), &["young"]), now(), 1))
        .await;
    let name = "main".parse().unwrap();
    let id = pointed.head.session_id;
    fixture.move_thread(&name, id).await;
    let run = queue(&fixture, Some(base.head.session_id)).await;
    let swept = fixture.sweep(older_than(2), now(), 1).await;
    assert_eq!((swept.sessions, swept.segments, swept.runs), (1, 0, 1));
    for (bundle, messages) in [(&pointed, 1), (&base, 1), (&young, 2)] {
        fixture.assert_whole(bundle, messages).await;
    }
    // No rule removes anything that is younger than the least age.
    assert_eq!(
        fixture
            .sweep(older_than(0), now() - TimeDelta::minutes(5), 10)
            .await
            .sessions,
        0
    );
    fixture.store.thread_delete(&fixture.tenant, &name).await.unwrap();
    let leave = format!("delete from run_queue where run_id = {run}");
    fixture.execute(&leave).await;
    assert_eq!(fixture.sweep(older_than(2), now(), 10).await.sessions, 2);
}

async fn a_subagent_in_use_retains_its_family(fixture: Fixture) {
    let commit = aged(family(&fixture, None), now(), 9);
    let committed = fixture.store.session_commit(&commit).await.unwrap();
    let name = "main".parse().unwrap();
    // The one that a subagent's subagent has made.
    let id = committed.children[1].head.session_id;
    fixture.move_thread(&name, id).await;
    assert_eq!(fixture.sweep(older_than(2), now(), 10).await, RemovalFigures::default());
    fixture.store.thread_delete(&fixture.tenant, &name).await.unwrap();
    assert_eq!(fixture.sweep(older_than(2), now(), 10).await.sessions, 4);
}

async fn a_subagent_in_use_retains_nothing_else_of_its_thread(fixture: Fixture) {
    let commit = aged(family(&fixture, None), now(), 9);
    let oldest = fixture.store.session_commit(&commit).await.unwrap();
    let mut sessions = vec![oldest.session.head.session_id];
    for _ in 0..3 {
        let commit = aged(fixture.commit(None, &["another"]), now(), 8);
        sessions.push(fixture.publish(&commit).await.head.session_id);
    }
    for session_id in &sessions {
        fixture.put_on_thread(*session_id, "main", true).await;
    }
    for (name, session_id) in [("main", sessions[3]), ("another", oldest.children[1].head.session_id)] {
        let name = name.parse().unwrap();
        fixture.move_thread(&name, session_id).await;
    }
    let rules = RetentionRules {
        keep_last: Some(1),
        ..KEEP_ALL
    };
    let planned = fixture.store.retention_plan(rules, now()).await.unwrap();
    // The oldest comes first, and is all that a step looks at.
    let swept = fixture.sweep(rules, now(), 1).await;
    assert_eq!((planned, swept.sessions), (swept, 2));
    for session_id in [sessions[0], sessions[3]] {
        fixture.load(session_id).await;
    }
}

async fn remains_of_runs_are_removed_long_after_their_end(fixture: Fixture) {
    add_remains(&fixture, 5).await;
    let active = add_remains(&fixture, 5).await;
    let sql = format!("update runs set completed_at = null, status = 'running' where run_id = {active}");
    fixture.execute(&sql).await;
    let rules = |events: u64, deliveries: u64| RetentionRules {
        events: Duration::from_secs(events * 3_600),
        deliveries: Duration::from_secs(deliveries * 3_600),
        ..KEEP_ALL
    };
    // Of both runs the keys have expired; nothing else is old enough.
    let planned = fixture.store.retention_plan(rules(6, 6), now()).await.unwrap();
    assert_eq!(planned, fixture.sweep(rules(6, 6), now(), 1).await);
    let keys = RemovalFigures {
        idempotency_keys: 2,
        ..RemovalFigures::default()
    };
    assert_eq!(planned, keys);
    // Deliveries go by themselves, events and messages with the end of their run.
    let planned = fixture.store.retention_plan(rules(4, 4), now()).await.unwrap();
    assert_eq!(planned, fixture.sweep(rules(4, 4), now(), 1).await);
    let remains = RemovalFigures {
        events: 1,
        messages: 1,
        deliveries: 2,
        bytes: 8,
        ..RemovalFigures::default()
    };
    assert_eq!(planned, remains);
    // The record of the failed run goes by age; of those that have not ended nothing.
    let planned = fixture.store.retention_plan(older_than(4), now()).await.unwrap();
    let swept = fixture.sweep(older_than(4), now(), 1).await;
    assert_eq!((planned, swept.runs, swept.events), (swept, 1, 0));
    assert_eq!(fixture.count("runs").await, 3);
}

async fn a_run_that_published_nothing_goes_by_age(fixture: Fixture) {
    for hours in [3, 5] {
        let mut record = run_record(run_id(), session_id(), RunStatus::Completed).without_contents();
        record.summary.publishes = false;
        record.summary.completed_at = Some(now() - TimeDelta::hours(hours));
        let end = run_end(record, Vec::new());
        fixture.store.run_record(&fixture.tenant, &end).await.unwrap();
    }
    let planned = fixture.store.retention_plan(older_than(4), now()).await.unwrap();
    let swept = fixture.sweep(older_than(4), now(), 1).await;
    assert_eq!((planned, swept.runs), (swept, 1));
    assert_eq!(fixture.count("runs").await, 1);
}

async fn the_newest_sessions_of_a_thread_stay_and_the_others_are_removed(fixture: Fixture) {
    let mut line = vec![fixture.publish(&aged(fixture.commit(None, &["0"]), now(), 50)).await];
    for turn in 1..6 {
        let commit = fixture.commit(line.last(), &["more"]);
        line.push(fixture.publish(&aged(commit, now(), 50 - turn)).await);
    }
    let name = "main".parse().unwrap();
    for bundle in &line {
        let id = bundle.head.session_id;
        fixture.put_on_thread(id, "main", true).await;
        fixture.move_thread(&name, id).await;
    }
    let rules = RetentionRules {
        keep_last: Some(2),
        ..older_than(2)
    };
    let planned = fixture.store.retention_plan(rules, now()).await.unwrap();
    let swept = fixture.sweep(rules, now(), 1).await;
    assert_eq!((planned, swept.sessions, swept.segments), (swept, 4, 0));
    fixture.assert_whole(&line[4], 5).await;
    fixture.assert_whole(&line[5], 6).await;
    // Without the thread they go by age alone.
    fixture.store.thread_delete(&fixture.tenant, &name).await.unwrap();
    let swept = fixture.sweep(rules, now(), 1).await;
    assert_eq!((swept.sessions, swept.segments), (2, 6));
    assert_eq!(fixture.count("removed_sessions").await, 0);
}

async fn sessions_that_did_not_move_their_thread_are_removed_by_age(fixture: Fixture) {
    let name = "main".parse().unwrap();
    let made = async |age: i64, has_moved: bool| {
        let made = fixture
            .publish(&aged(fixture.commit(None, &["on it"]), now(), age))
            .await;
        let id = made.head.session_id;
        fixture.put_on_thread(id, "main", has_moved).await;
        if has_moved {
            fixture.move_thread(&name, id).await;
        }
        made
    };
    let line = [made(9, true).await, made(8, true).await];
    let beside = [made(7, false).await, made(6, false).await, made(4, false).await];
    let last = made(3, true).await;
    made(2, false).await;
    let swept = async |rules: RetentionRules| {
        let planned = fixture.store.retention_plan(rules, now()).await.unwrap();
        let swept = fixture.sweep(rules, now(), 1).await;
        assert_eq!(planned, swept);
        swept.sessions
    };
    let keep_two = RetentionRules {
        keep_last: Some(2),
        ..KEEP_ALL
    };
    assert_eq!(swept(keep_two).await, 1, "the first of the line, and none beside it");
    for retained in beside.iter().chain([&line[1], &last]) {
        fixture.load(retained.head.session_id).await;
    }
    let by_age_too = RetentionRules {
        keep_last: Some(2),
        ..older_than(5)
    };
    assert_eq!(swept(by_age_too).await, 2);
    for retained in [&line[1], &beside[2], &last] {
        fixture.load(retained.head.session_id).await;
    }
}

async fn everything_is_retained_by_default(fixture: Fixture) {
    let old = fixture
        .publish(&aged(fixture.commit(None, &["old"]), now(), 100_000))
        .await;
    assert_eq!(fixture.sweep(KEEP_ALL, now(), 10).await, RemovalFigures::default());
    fixture.assert_whole(&old, 1).await;
}
