//! Runs are stored once, with their output and steps, and listed without them.

use agent::record::{RunError, RunPhase, RunRecord, RunStatus, RunSummary};
use serde_json::json;
use store::runs::{Recorded, RunEnd, RunFilter, StepPage};
use store::{Page, TimeRange};
use test_support::drafts::{object, run_end, run_id, run_record, session_id, step, tenant, user};
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::tenant::TenantId;

use crate::fixtures::Fixture;

on_both_engines!(
    a_failed_run_is_stored_once,
    a_run_without_a_session_may_have_completed,
    a_committed_run_is_readable,
    a_run_is_hidden_for_good,
    runs_filter_and_page
);

async fn a_failed_run_is_stored_once(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let mut run = run_record(run_id(), session_id(), RunStatus::Failed);
    run.summary.base_session_id = Some(session_id());
    run.summary.stop_reason = None;
    run.summary.started_at = None;
    run.summary.completed_at = None;
    run.summary.usage.cost = None;
    run.summary.usage.total_tokens = i64::MAX as u64;
    run.summary.error = Some(RunError {
        code: "model_overloaded".to_owned(),
        message: "NUL \u{0} and \u{1f980}".to_owned(),
        phase: RunPhase::Execute,
        conflicting_run_id: None,
    });
    let mut steps = vec![step(1), step(2)];
    steps[1].messages = vec![user("kept \u{0}")];
    let end = run_end(run.clone(), steps.clone());
    for expected in [Recorded::Now, Recorded::Before] {
        assert_eq!(store.run_record(tenant_id, &end).await.unwrap(), expected);
    }
    let id = run.summary.run_id;
    assert_eq!(store.run_lookup(tenant_id, id).await.unwrap(), Some(run.clone()));
    assert_eq!(store.step_list(tenant_id, id).await.unwrap(), Some(steps.clone()));
    for (indexes, found) in [(0..1, 0..1), (1..u64::MAX, 1..2), (2..2, 2..2), (7..9, 2..2)] {
        let page = StepPage {
            steps: steps[found].to_vec(),
            total: 2,
        };
        assert_eq!(store.step_page(tenant_id, id, indexes).await.unwrap(), Some(page));
    }
    let found = store
        .run_lookup_by_session(tenant_id, run.summary.session_id)
        .await
        .unwrap();
    assert_eq!(found, Some(run.summary.clone()));
    assert_eq!(
        store.bundle_load(tenant_id, run.summary.session_id).await.unwrap(),
        None
    );
    assert_eq!(store.run_lookup(tenant_id, run_id()).await.unwrap(), None);
    assert_eq!(store.step_list(tenant_id, run_id()).await.unwrap(), None);
    assert_eq!(store.run_lookup(&tenant("other"), id).await.unwrap(), None);
}

async fn a_run_without_a_session_may_have_completed(fixture: Fixture) {
    let base = fixture.publish(&fixture.commit(None, &["base"])).await;
    let mut run = run_record(run_id(), session_id(), RunStatus::Completed).without_contents();
    run.summary.publishes = false;
    run.summary.base_session_id = Some(base.head.session_id);
    let end = run_end(run.clone(), Vec::new());
    let recorded = fixture.store.run_record(&fixture.tenant, &end).await.unwrap();
    assert_eq!(recorded, Recorded::Now);
    assert_eq!(fixture.run(run.summary.run_id).await, Some(run.clone()));
    let filter = RunFilter {
        base_session_id: Some(base.head.session_id),
        ..RunFilter::default()
    };
    let page = Page { before: None, limit: 3 };
    let listed = fixture.store.run_list(&fixture.tenant, &filter, page).await.unwrap();
    assert_eq!(listed, [run.summary]);
}

async fn a_committed_run_is_readable(fixture: Fixture) {
    let commit = fixture.commit(None, &["question", "answer"]);
    fixture.publish(&commit).await;
    let RunEnd { record, steps, .. } = commit.run.unwrap();
    let id = record.summary.run_id;
    assert_eq!(fixture.store.step_list(&fixture.tenant, id).await.unwrap(), Some(steps));
    assert_eq!(fixture.run(id).await, Some(record));
}

async fn a_run_is_hidden_for_good(fixture: Fixture) {
    let commit = fixture.commit(None, &["question", "answer"]);
    fixture.publish(&commit).await;
    let record = commit.run.unwrap().record;
    let id = record.summary.run_id;
    let hide = async |tenant: &TenantId, id| fixture.store.run_hide(tenant, id).await.unwrap();
    assert!(!hide(&tenant("other"), id).await);
    assert!(!hide(&fixture.tenant, run_id()).await);
    assert_eq!(fixture.run(id).await, Some(record.clone()));
    for _ in 0..2 {
        assert!(hide(&fixture.tenant, id).await);
        let hidden = RunRecord {
            is_hidden: true,
            ..record.clone()
        };
        assert_eq!(fixture.run(id).await, Some(hidden));
    }
}

async fn runs_filter_and_page(fixture: Fixture) {
    let first = fixture.commit(None, &["base"]);
    let base = fixture.publish(&first).await;
    let mut all = vec![first.run.unwrap().record.summary];
    let base_id = base.head.session_id;
    for index in 0..11 {
        let status = [RunStatus::Failed, RunStatus::Cancelled, RunStatus::Completed][index % 3];
        let is_continuing = index % 2 == 0;
        let mut commit = fixture.commit(is_continuing.then_some(&base), &["next"]);
        let mut run = run_record(commit.draft.run_id.unwrap(), commit.draft.session_id, status);
        run.summary.base_session_id = is_continuing.then_some(base_id);
        if index < 5 { "early" } else { "late" }.clone_into(&mut run.summary.agent);
        if index % 4 == 1 {
            run.summary.model = "mock/other".parse().unwrap();
            run.summary.metadata = object(json!({"index": index, "deep": {"a": 1, "b": [1]}}));
        }
        let end = run_end(run.clone(), Vec::new());
        if status.has_session() {
            commit.run = Some(end);
            fixture.publish(&commit).await;
        } else {
            fixture.store.run_record(&fixture.tenant, &end).await.unwrap();
        }
        all.push(run.summary);
    }
    all.reverse();
    let middle = all[5].created_at;
    for filter in filters(base_id, middle) {
        let expected: Vec<_> = all.iter().filter(|run| fits(&filter, run)).cloned().collect();
        let mut seen = Vec::new();
        let mut page: Page<RunId> = Page { before: None, limit: 3 };
        loop {
            let runs = fixture.store.run_list(&fixture.tenant, &filter, page).await.unwrap();
            let Some(last) = runs.last() else { break };
            page.before = Some(last.run_id);
            seen.extend(runs);
        }
        assert_eq!(seen, expected, "{filter:?}");
    }
}

/// Filters of every kind, and some together.
fn filters(base: SessionId, middle: Timestamp) -> Vec<RunFilter> {
    vec![
        RunFilter::default(),
        RunFilter {
            statuses: vec![RunStatus::Cancelled],
            ..RunFilter::default()
        },
        RunFilter {
            statuses: vec![RunStatus::Completed],
            ..RunFilter::default()
        },
        RunFilter {
            statuses: vec![RunStatus::Cancelled, RunStatus::Queued, RunStatus::Failed],
            ..RunFilter::default()
        },
        RunFilter {
            statuses: vec![RunStatus::Completed, RunStatus::Failed],
            agent: Some("late".to_owned()),
            ..RunFilter::default()
        },
        RunFilter {
            agent: Some("late".to_owned()),
            ..RunFilter::default()
        },
        RunFilter {
            agent: Some("\u{0}".to_owned()),
            ..RunFilter::default()
        },
        RunFilter {
            model: Some("mock/other".parse().unwrap()),
            ..RunFilter::default()
        },
        RunFilter {
            metadata: object(json!({"index": 5})),
            ..RunFilter::default()
        },
        RunFilter {
            metadata: object(json!({"deep": {"b": [1], "a": 1}})),
            agent: Some("late".to_owned()),
            ..RunFilter::default()
        },
        RunFilter {
            metadata: object(json!({"deep": {"a": 1}})),
            ..RunFilter::default()
        },
        RunFilter {
            base_session_id: Some(base),
            ..RunFilter::default()
        },
        RunFilter {
            base_session_id: Some(base),
            statuses: vec![RunStatus::Failed, RunStatus::Cancelled],
            ..RunFilter::default()
        },
        RunFilter {
            created: TimeRange {
                from: Some(middle),
                until: None,
            },
            ..RunFilter::default()
        },
        RunFilter {
            created: TimeRange {
                from: None,
                until: Some(middle),
            },
            ..RunFilter::default()
        },
    ]
}

/// Tells whether a list by the filter has the run.
fn fits(filter: &RunFilter, run: &RunSummary) -> bool {
    (filter.statuses.is_empty() || filter.statuses.contains(&run.status))
        && filter.agent.as_ref().is_none_or(|agent| *agent == run.agent)
        && filter.model.as_ref().is_none_or(|model| *model == run.model)
        && filter
            .metadata
            .iter()
            .all(|(key, value)| run.metadata.get(key) == Some(value))
        && filter
            .base_session_id
            .is_none_or(|base| Some(base) == run.base_session_id)
        && filter.created.from.is_none_or(|from| run.created_at >= from)
        && filter.created.until.is_none_or(|until| run.created_at < until)
}
