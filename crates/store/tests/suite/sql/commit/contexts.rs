//! Contexts: conversations share them, since they are stored without the agent instance.

use std::sync::Arc;

use chrono::SubsecRound as _;
use store::portable::PortableSession;
use store::sessions::{Commit, ConflictPolicy};
use test_support::drafts::tenant;
use values::clock::Timestamp;
use values::ids::{BranchId, UuidV7Source};
use values::session::{Bundle, RunOutcome};
use values::tenant::TenantId;

use crate::fixtures::Fixture;

on_both_engines!(conversations_share_a_context, a_line_is_copied_with_its_agent_instance,);

const CONTEXTS: &str = "states where kind = 'context'";

fn with_nanoseconds() -> Timestamp {
    "2026-01-01T00:00:00.123456789Z".parse().unwrap()
}

/// Checks that the tenant has the sessions as they were published, and that the hashes of their
/// line match.
async fn assert_sound(fixture: &Fixture, tenant: &TenantId, line: &[Arc<Bundle>]) {
    for bundle in line {
        let session_id = bundle.head.session_id;
        let loaded = fixture.store.bundle_load(tenant, session_id).await.unwrap().unwrap();
        assert_eq!(loaded, **bundle);
    }
    let tip = line.last().unwrap().head.session_id;
    let report = fixture.store.session_verify(tenant, tip).await.unwrap().unwrap();
    assert_eq!((report.sessions, report.faults), (line.len() as u64, vec![]));
}

async fn conversations_share_a_context(fixture: Fixture) {
    let one = fixture.root(&["one"]).await;
    let mut commit = fixture.commit(None, &["two"]);
    commit.draft.context.stored.created_at = with_nanoseconds();
    let two = fixture.publish(&commit).await;
    let at_once = [fixture.commit(None, &["three"]), fixture.commit(None, &["four"])];
    let (three, four) = tokio::join!(fixture.publish(&at_once[0]), fixture.publish(&at_once[1]));
    assert_eq!(fixture.count(CONTEXTS).await, 1);
    for other in [&two, &three, &four] {
        assert_eq!(other.head.context_hash, one.head.context_hash);
        assert_ne!(other.context.agent_id, one.context.agent_id);
    }
    // Each has the agent instance that it was published with, in whole microseconds.
    assert_eq!(two.context.created_at, with_nanoseconds().trunc_subsecs(6));
    for root in [one, two, three, four] {
        assert_eq!(root.head.agent_instance, root.context.agent_instance());
        let child = fixture.child(&root, &["more"]).await;
        assert_eq!(child.context, root.context);
        assert_sound(&fixture, &fixture.tenant, &[root, child]).await;
    }
    assert_eq!(fixture.count(CONTEXTS).await, 1);
}

async fn a_line_is_copied_with_its_agent_instance(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let same = fixture.child(&root, &["same"]).await;
    let mut commit = fixture.commit(Some(&same), &["changed"]);
    commit.draft.context.stored.system_prompt.push('!');
    let changed = fixture.publish(&commit).await;
    let line = [root, same, changed];
    let copies = tenant("copies");
    let mut copied: Vec<Arc<Bundle>> = Vec::new();
    // The second session names an outcome of a later version.
    let outcomes = ["completed", "paused", "completed"];
    for (bundle, outcome) in line.iter().zip(outcomes) {
        let (store, session_id) = (&fixture.store, bundle.head.session_id);
        let states = store.states_load(&fixture.tenant, session_id).await.unwrap().unwrap();
        let messages = store.new_message_list(&fixture.tenant, session_id).await.unwrap();
        let portable = PortableSession::of(&states, &messages.unwrap()).unwrap();
        let run_status = |outcome: &str| format!(r#""run_status":"{outcome}""#);
        let text = serde_json::to_string(&portable).unwrap();
        let text = text.replace(&run_status("completed"), &run_status(outcome));
        let portable: PortableSession = serde_json::from_str(&text).unwrap();
        let commit = Commit {
            tenant: copies.clone(),
            draft: portable
                .into_draft(copied.last().cloned(), BranchId::generate(&UuidV7Source))
                .unwrap(),
            run: None,
            thread: None,
            conflict: ConflictPolicy::Fork,
            children: Vec::new(),
            environment_from: None,
        };
        copied.push(fixture.publish(&commit).await);
    }
    for (copy, original) in copied.iter().zip(&line) {
        assert_eq!(copy.head.root_hash, original.head.root_hash);
        assert_eq!(copy.head.agent_instance, original.head.agent_instance);
        assert_eq!(copy.context, original.context);
    }
    let completed = Some(RunOutcome::Completed);
    let found: Vec<_> = copied.iter().map(|copy| copy.head.run_status).collect();
    assert_eq!(found, [completed, None, completed]);
    assert_sound(&fixture, &copies, &copied).await;
}
