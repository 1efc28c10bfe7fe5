//! Sessions of subagents: published with the run that started them, and ordinary sessions
//! afterwards.

use std::sync::Arc;

use store::sessions::{Commit, Committed, ConflictPolicy, SessionFilter};
use store::{Page, Sessions};
use test_support::drafts::{draft, tenant, user};
use values::clock::SystemClock;
use values::ids::SessionId;
use values::session::{Bundle, BundleDraft, EnvironmentState};

use crate::fixtures::Fixture;

on_both_engines!(
    subagents_are_published_with_their_run,
    equal_states_are_stored_once,
    subagents_are_continued_like_any_session,
    sessions_are_listed_by_the_session_that_started_them,
    other_tenants_see_no_subagents,
    sessions_of_subagents_are_cached,
    steps_are_measured_with_the_messages_of_subagents,
);

/// The session of a subagent in the commit: it continues the parent, and the agent of another
/// session has started it.
pub(crate) fn subagent(commit: &Commit, of: SessionId, parent: Option<&Arc<Bundle>>, texts: &[&str]) -> BundleDraft {
    BundleDraft {
        run_id: commit.draft.run_id,
        subagent_of: Some(of),
        agent: "helper".to_owned(),
        ..draft(parent, texts.iter().map(|text| user(text)).collect())
    }
}

/// A run on the parent with two subagents, the second of which has one of its own, named before it.
pub(crate) fn family(fixture: &Fixture, parent: Option<&Arc<Bundle>>) -> Commit {
    let mut commit = fixture.commit(parent, &["run"]);
    let own = commit.draft.session_id;
    let first = subagent(&commit, own, None, &["first", "answer"]);
    let second = subagent(&commit, own, None, &["second"]);
    let third = subagent(&commit, second.session_id, None, &["of the second"]);
    commit.children = vec![first, third, second];
    commit
}

pub(crate) async fn publish(fixture: &Fixture, commit: &Commit) -> Committed {
    fixture.store.session_commit(commit).await.unwrap()
}

pub(crate) async fn assert_sound(fixture: &Fixture, committed: &Committed) {
    for bundle in std::iter::once(&committed.session).chain(&committed.children) {
        let id = bundle.head.session_id;
        assert_eq!(fixture.load(id).await, *bundle);
        let report = fixture.verify(id).await;
        assert_eq!(report.faults, []);
    }
}

async fn subagents_are_published_with_their_run(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    for parent in [None, Some(&root)] {
        let commit = family(&fixture, parent);
        let committed = publish(&fixture, &commit).await;
        assert_eq!(committed.session.head.subagent_of, None);
        let heads: Vec<_> = committed.children.iter().map(|child| &child.head).collect();
        for (head, draft) in heads.iter().zip(&commit.children) {
            assert_eq!(
                (head.session_id, head.subagent_of, head.run_id),
                (draft.session_id, draft.subagent_of, commit.draft.run_id)
            );
            assert_eq!((head.depth, head.parent_session_id), (0, None));
        }
        assert_eq!(heads.len(), 3);
        assert_eq!(heads[1].subagent_of, Some(heads[2].session_id));
        assert_sound(&fixture, &committed).await;
    }
    assert_eq!(fixture.counts(["sessions", "runs"]).await, [9, 3]);
    // Who started a session is part of it.
    let mut commit = fixture.commit(None, &["run"]);
    let child = subagent(&commit, commit.draft.session_id, None, &["child"]);
    commit.children = vec![child.clone()];
    let of_subagent = publish(&fixture, &commit).await.children.remove(0);
    fixture.database.allow_updates().await;
    fixture.execute("update sessions set subagent_of = null").await;
    let id = of_subagent.head.session_id;
    let report = fixture.verify(id).await;
    assert_eq!(
        report.faults.iter().map(|fault| fault.part).collect::<Vec<_>>(),
        ["root_hash"]
    );
}

async fn equal_states_are_stored_once(fixture: Fixture) {
    let mut commit = family(&fixture, None);
    for child in &mut commit.children {
        child.environment = Arc::clone(&commit.draft.environment);
        child.context.stored = commit.draft.context.stored.clone();
    }
    commit.children[0].environment = Arc::new(EnvironmentState::default());
    let committed = publish(&fixture, &commit).await;
    assert_eq!(fixture.count("states").await, 3);
    assert_sound(&fixture, &committed).await;
}

async fn subagents_are_continued_like_any_session(fixture: Fixture) {
    let mut committed = publish(&fixture, &family(&fixture, None)).await;
    let (first, root) = (Arc::new(committed.children.remove(0)), Arc::new(committed.session));
    // By a later run of the one that started it, twice at once: neither has a rival.
    let mut commit = Commit {
        conflict: ConflictPolicy::Reject,
        ..fixture.commit(Some(&root), &["again"])
    };
    let own = commit.draft.session_id;
    commit.children = vec![
        subagent(&commit, own, Some(&first), &["and"]),
        subagent(&commit, own, Some(&first), &["or"]),
    ];
    let committed = publish(&fixture, &commit).await;
    assert_sound(&fixture, &committed).await;
    let [and, or] = &committed.children[..] else {
        panic!("two children")
    };
    assert_eq!(and.head.position.branch_id, first.head.position.branch_id);
    assert_ne!(or.head.position.branch_id, first.head.position.branch_id);
    for child in [and, or] {
        assert_eq!((child.head.depth, child.head.message_count), (1, 3));
        assert_eq!(child.head.parent_session_id, Some(first.head.session_id));
    }
    // By a caller: then it is nobody's subagent any more.
    let next = fixture.child(&Arc::new(and.clone()), &["by a caller"]).await;
    assert_eq!((next.head.subagent_of, next.head.depth), (None, 2));
    assert_eq!(fixture.load(next.head.session_id).await, *next);
    let report = fixture
        .store
        .session_verify(&fixture.tenant, next.head.session_id)
        .await;
    let report = report.unwrap().unwrap();
    assert_eq!((report.sessions, report.faults), (3, vec![]));
}

async fn sessions_are_listed_by_the_session_that_started_them(fixture: Fixture) {
    let mut commit = fixture.commit(None, &["run"]);
    let own = commit.draft.session_id;
    commit.children = (0..5)
        .map(|turn| subagent(&commit, own, None, &[&turn.to_string()]))
        .collect();
    let of_child = subagent(&commit, commit.children[0].session_id, None, &["deep"]);
    commit.children.push(of_child);
    publish(&fixture, &commit).await;
    publish(&fixture, &family(&fixture, None)).await;
    let filter = |subagent_of: SessionId| SessionFilter {
        subagent_of: Some(subagent_of),
        ..SessionFilter::default()
    };
    let mut page = Page { before: None, limit: 2 };
    let mut found = Vec::new();
    loop {
        let heads = fixture
            .store
            .session_list(&fixture.tenant, &filter(own), page)
            .await
            .unwrap();
        let Some(last) = heads.last() else { break };
        assert!(heads.len() <= 2 && heads.iter().all(|head| head.subagent_of == Some(own)));
        page.before = Some(last.session_id);
        found.extend(heads.iter().map(|head| head.session_id));
    }
    let mut expected: Vec<_> = commit.children[..5].iter().map(|child| child.session_id).collect();
    expected.sort();
    expected.reverse();
    assert_eq!(found, expected);
    for (of, agent, count) in [
        (commit.children[0].session_id, None, 1),
        (commit.children[1].session_id, None, 0),
        (own, Some("helper"), 5),
        (own, Some("demo"), 0),
    ] {
        let filter = SessionFilter {
            agent: agent.map(str::to_owned),
            ..filter(of)
        };
        let page = Page { before: None, limit: 9 };
        let heads = fixture
            .store
            .session_list(&fixture.tenant, &filter, page)
            .await
            .unwrap();
        assert_eq!(heads.len(), count, "{filter:?}");
    }
    // A child is no continuation: the run's own session is still a tip.
    let tips = SessionFilter {
        tips_only: true,
        agent: Some("demo".to_owned()),
        ..SessionFilter::default()
    };
    let page = Page { before: None, limit: 9 };
    assert_eq!(
        fixture
            .store
            .session_list(&fixture.tenant, &tips, page)
            .await
            .unwrap()
            .len(),
        2
    );
}

async fn other_tenants_see_no_subagents(fixture: Fixture) {
    let commit = family(&fixture, None);
    let committed = publish(&fixture, &commit).await;
    let other = tenant("other");
    for child in &committed.children {
        let id = child.head.session_id;
        assert_eq!(fixture.store.bundle_load(&other, id).await.unwrap(), None);
        let filter = SessionFilter {
            subagent_of: child.head.subagent_of,
            ..SessionFilter::default()
        };
        let page = Page { before: None, limit: 9 };
        assert_eq!(fixture.store.session_list(&other, &filter, page).await.unwrap(), []);
    }
    // The same ids may exist there, too, and stay apart.
    let theirs = Commit {
        tenant: other.clone(),
        ..commit
    };
    let theirs = publish(&fixture, &theirs).await;
    assert_eq!(theirs, committed);
    let id = committed.children[0].head.session_id;
    assert_eq!(
        fixture.store.bundle_load(&other, id).await.unwrap().unwrap(),
        theirs.children[0]
    );
    assert_eq!(fixture.count("sessions").await, 8);
}

async fn sessions_of_subagents_are_cached(fixture: Fixture) {
    let sessions = Sessions::new(Arc::clone(&fixture.store), 1 << 20, Arc::new(SystemClock));
    let commit = family(&fixture, None);
    sessions.commit(&commit).await.unwrap();
    let mut stored = Vec::new();
    for child in &commit.children {
        stored.push(fixture.load(child.session_id).await);
    }
    fixture.execute("delete from sessions").await;
    for child in stored {
        let hot = sessions
            .bundle(&fixture.tenant, child.head.session_id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(*hot, child);
        assert_eq!(
            sessions.bundle(&tenant("other"), child.head.session_id).await.unwrap(),
            None
        );
    }
}

async fn steps_are_measured_with_the_messages_of_subagents(fixture: Fixture) {
    let (mut commit, other) = (family(&fixture, None), tenant("other"));
    let size = async |commit: &Commit, of| {
        let run_id = commit.draft.run_id.unwrap();
        fixture.store.steps_size(of, run_id).await.unwrap()
    };
    for number in 0..commit.children.len() {
        let history = std::mem::take(&mut commit.children[number].history);
        commit.children[number].history = history.with_message(user(&"x".repeat(100_000)));
    }
    publish(&fixture, &commit).await;
    let measured = size(&commit, &fixture.tenant).await;
    assert!((300_000..310_000).contains(&measured), "{measured}");
    assert_eq!(size(&commit, &other).await, 0);
    // Those of another run's subagents are not its own.
    let small = family(&fixture, None);
    publish(&fixture, &small).await;
    let measured = size(&small, &fixture.tenant).await;
    assert!(measured < 10_000, "{measured}");
}
