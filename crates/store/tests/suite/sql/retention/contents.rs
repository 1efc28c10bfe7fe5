//! Sweeps of contents: what a session or a journal has stays, and all else goes after a while.

use chrono::TimeDelta;
use store::retention::{RemovalFigures, SessionRemoval};
use test_support::databases::Engine;
use test_support::drafts::{now, requester, tenant};
use test_support::workspaces::{Node, below, chunked, directory, entry, environment_of, file, large_directory};
use values::clock::Timestamp;
use values::session::{Bundle, Hash};
use workspace::Content;

use super::KEEP_ALL;
use crate::fixtures::Fixture;
use crate::sql::contents::hash_literal;
use crate::sql::queue::fixtures::{commit_of, journal, queued_run};

on_both_engines!(
    what_nothing_refers_to_goes_after_the_grace_period,
    what_a_session_or_a_journal_has_stays,
    a_removed_fork_leaves_the_files_of_its_sibling,
    a_tenant_without_changes_is_not_swept,
    a_sweep_that_was_cut_off_is_repeated,
    a_damaged_directory_stops_the_sweep_of_its_tenant_alone,
    a_dry_run_counts_what_the_sweep_removes,
);

/// Long after all that was written.
fn later() -> Timestamp {
    now() + TimeDelta::hours(3)
}

impl Fixture {
    async fn sweep_contents(&self, now: Timestamp) -> u64 {
        self.sweep(KEEP_ALL, now, 10).await.contents
    }

    /// Publishes a session with a tree.
    pub(crate) async fn with_tree(&self, tree: Hash) -> std::sync::Arc<Bundle> {
        let mut commit = self.commit(None, &["files"]);
        commit.draft.environment = environment_of(tree, &tree.to_string()).into();
        self.publish(&commit).await
    }

    async fn has(&self, content: &Content) -> bool {
        let loaded = self.store.content_load(&self.tenant, &[content.hash]).await.unwrap();
        loaded[0].is_some()
    }
}

/// A tree of one file with this text, with its contents.
fn tree_of(text: &str) -> [Content; 2] {
    let file = file(text.to_owned());
    let root = directory(&[("file", entry(&file))]);
    [file, root]
}

async fn what_nothing_refers_to_goes_after_the_grace_period(fixture: Fixture) {
    let contents: Vec<Content> = (0..25).map(|n| file(vec![n])).collect();
    fixture.put(&contents).await;
    let other = tenant("other");
    fixture.store.content_put(&other, &contents[..5]).await.unwrap();
    // The grace period is an hour, and a write may be ten minutes later than is stored.
    for minutes in [0, 30, 65] {
        let now = now() + TimeDelta::minutes(minutes);
        assert_eq!(
            fixture.sweep(KEEP_ALL, now, 10).await,
            RemovalFigures::default(),
            "{minutes}"
        );
    }
    let swept = fixture.sweep(KEEP_ALL, now() + TimeDelta::minutes(75), 10).await;
    let expected = RemovalFigures {
        contents: 30,
        bytes: 30,
        ..RemovalFigures::default()
    };
    assert_eq!(swept, expected);
    assert_eq!(fixture.count("contents").await, 0);
    assert_eq!(
        fixture
            .store
            .content_missing(&fixture.tenant, &[contents[0].hash])
            .await
            .unwrap()
            .len(),
        1
    );
    // What was written a short time ago stays, also beside old ones.
    fixture.put(&contents[..3]).await;
    fixture.age_contents(120).await;
    fixture.put(&contents[2..4]).await;
    assert_eq!(fixture.sweep_contents(now()).await, 2);
    assert_eq!(fixture.count("contents").await, 2);
}

async fn what_a_session_or_a_journal_has_stays(fixture: Fixture) {
    let chunks = [file("first"), file("second")];
    let large = chunked(&chunks);
    let (nested, in_part) = (file("nested"), file("in a part"));
    let inner = directory(&[("nested", entry(&nested))]);
    let (many, parts) = large_directory(entry(&in_part));
    let root = directory(&[
        ("below", below(&inner)),
        ("large", Node::File(large.hash, 11)),
        ("many", below(&many)),
    ]);
    let needed = [large, nested, in_part, inner, many, root.clone()];
    let needed: Vec<_> = needed.into_iter().chain(chunks).chain(parts).collect();
    let count = i64::try_from(needed.len()).unwrap();
    fixture.put(&needed).await;
    let (journalled, stray) = (tree_of("of a journal"), tree_of("stray"));
    fixture.put(&journalled).await;
    fixture.put(&stray).await;
    let session = fixture.with_tree(root.hash).await;
    fixture.store.run_accept(&queued_run(&fixture.tenant)).await.unwrap();
    let leased = fixture.lease_one().await;
    let mut entries = journal(1, 2);
    entries[1].tree = Some(journalled[1].hash);
    assert!(
        fixture
            .store
            .progress_append(&leased.lease, &entries, &[])
            .await
            .unwrap()
    );

    assert_eq!(fixture.sweep_contents(later()).await, 2);
    assert!(!fixture.has(&stray[0]).await && !fixture.has(&stray[1]).await);
    assert_eq!(fixture.count("contents").await, count + 2);
    let report = fixture.verify(session.head.session_id).await;
    assert_eq!(report.faults, []);
    // When the run has ended, its session has the files or nothing has them.
    fixture.publish(&commit_of(&fixture, &leased)).await;
    assert_eq!(fixture.sweep_contents(later() + TimeDelta::hours(3)).await, 2);
    assert_eq!(fixture.count("contents").await, count);
    assert_eq!(fixture.count("content_sweeps").await, 0);
}

async fn a_removed_fork_leaves_the_files_of_its_sibling(fixture: Fixture) {
    let (shared, ours, theirs) = (file("shared"), file("ours"), file("theirs"));
    let common = directory(&[("shared", entry(&shared))]);
    let fork = |own: &Content| directory(&[("common", below(&common)), ("own", entry(own))]);
    let (our_root, their_root) = (fork(&ours), fork(&theirs));
    let all = [&shared, &ours, &theirs, &common, &our_root, &their_root].map(Clone::clone);
    fixture.put(&all).await;
    let base = fixture.root(&["base"]).await;
    let mut sessions = Vec::new();
    for root in [&our_root, &their_root] {
        let mut commit = fixture.commit(Some(&base), &["fork"]);
        commit.draft.environment = environment_of(root.hash, "a").into();
        sessions.push(fixture.publish(&commit).await.head.session_id);
    }
    // All has come to rest before the removal.
    assert_eq!(fixture.sweep_contents(later()).await, 0);
    assert_eq!(fixture.count("content_sweeps").await, 0);
    fixture.age_contents(300).await;
    let removed = fixture
        .store
        .session_remove(&fixture.tenant, sessions[1], false, &requester())
        .await;
    assert!(matches!(removed, Ok(SessionRemoval::Removed(_))), "{removed:?}");
    assert_eq!(
        fixture.sweep_contents(now()).await,
        0,
        "a removal is followed by a sweep, an hour later"
    );
    assert_eq!(fixture.sweep_contents(later()).await, 2);
    assert!(!fixture.has(&theirs).await && !fixture.has(&their_root).await);
    let report = fixture.verify(sessions[0]).await;
    assert_eq!(report.faults, []);
    // A removal of a session without files is no reason to sweep.
    let plain = fixture.root(&["plain"]).await.head.session_id;
    fixture.remove(plain).await;
    assert_eq!(fixture.count("content_sweeps").await, 0);
}

async fn a_tenant_without_changes_is_not_swept(fixture: Fixture) {
    let [file, root] = tree_of("kept");
    fixture.put(&[file.clone(), root.clone()]).await;
    fixture.with_tree(root.hash).await;
    let sweeps = async || fixture.count("content_sweeps").await;
    // The first sweep begins soon after the last change, so that another one follows.
    assert_eq!(fixture.sweep_contents(now() + TimeDelta::minutes(72)).await, 0);
    assert_eq!(sweeps().await, 1);
    assert_eq!(fixture.sweep_contents(now() + TimeDelta::minutes(140)).await, 0);
    assert_eq!(sweeps().await, 1, "it was swept an hour ago");
    assert_eq!(fixture.sweep_contents(now() + TimeDelta::minutes(150)).await, 0);
    assert_eq!(sweeps().await, 0);
    // Without a change, even unreferenced contents stay. After one they go.
    fixture.age_contents(300).await;
    fixture.execute("delete from sessions; delete from states").await;
    assert_eq!(fixture.sweep_contents(later()).await, 0);
    assert_eq!(
        fixture
            .store
            .content_missing(&fixture.tenant, &[file.hash])
            .await
            .unwrap(),
        []
    );
    assert_eq!(sweeps().await, 1);
    assert_eq!(fixture.sweep_contents(later()).await, 2);
}

async fn a_sweep_that_was_cut_off_is_repeated(fixture: Fixture) {
    fixture.put(&tree_of("lost")).await;
    fixture.age_contents(120).await;
    // A process has claimed the tenant and ended.
    let claim = match fixture.database.engine {
        Engine::Postgres => "update content_sweeps set swept_at = now()",
        Engine::Sqlite => "update content_sweeps set swept_at = unixepoch() * 1000000",
    };
    fixture.execute(claim).await;
    assert_eq!(fixture.sweep_contents(now()).await, 0);
    assert_eq!(fixture.sweep_contents(now() + TimeDelta::minutes(75)).await, 2);
}

async fn a_damaged_directory_stops_the_sweep_of_its_tenant_alone(fixture: Fixture) {
    let [kept, root] = tree_of("kept");
    fixture.put(&[kept.clone(), root.clone(), file("stray")]).await;
    fixture.with_tree(root.hash).await;
    let other = tenant("other");
    fixture
        .store
        .content_put(&other, &tree_of("of another tenant"))
        .await
        .unwrap();
    fixture.database.allow_updates().await;
    let which = hash_literal(&fixture, root.hash);
    let damage = format!("update contents set payload = hash where hash = {which}");
    fixture.execute(&damage).await;
    assert_eq!(fixture.sweep_contents(later()).await, 2, "those of the other tenant");
    assert!(fixture.has(&kept).await && fixture.has(&file("stray")).await);
    let plan = fixture
        .store
        .retention_plan(KEEP_ALL, later() + TimeDelta::hours(3))
        .await
        .unwrap();
    assert_eq!(plan.contents, 0);
    // A missing directory stops nothing: nothing below it can be found anyway.
    fixture
        .execute(&format!("delete from contents where hash = {which}"))
        .await;
    assert_eq!(fixture.sweep_contents(later() + TimeDelta::hours(3)).await, 2);
}

async fn a_dry_run_counts_what_the_sweep_removes(fixture: Fixture) {
    let [_, root] = tree_of("kept");
    fixture.put(&tree_of("kept")).await;
    fixture.with_tree(root.hash).await;
    let stray: Vec<Content> = (0..40).map(|n| file(vec![n; 20])).collect();
    fixture.put(&stray).await;
    fixture.store.content_put(&tenant("other"), &stray[..2]).await.unwrap();
    let young = fixture.store.retention_plan(KEEP_ALL, now()).await.unwrap();
    assert_eq!(young, RemovalFigures::default());
    let plan = fixture.store.retention_plan(KEEP_ALL, later()).await.unwrap();
    assert_eq!((plan.contents, plan.bytes), (42, 840));
    assert_eq!(fixture.sweep(KEEP_ALL, later(), 10).await, plan);
}
