//! Compacted histories: a summary stands for what it covers, a run needs only the rest, and all
//! messages stay readable.

use std::sync::Arc;

use store::{CommitError, Sessions, StoreError};
use test_support::drafts::{call, result, summary, user};
use values::clock::SystemClock;
use values::ids::SessionId;
use values::message::Message;
use values::session::{Bundle, diff_bundles};

use crate::fixtures::Fixture;

on_both_engines!(
    a_compacted_line_loads_only_its_tail,
    forks_before_and_after_a_summary_load_what_they_need,
    a_window_may_begin_anywhere_on_its_line,
    a_newer_summary_moves_the_window,
    calls_stay_with_their_results,
    bad_coverages_are_refused,
    a_draft_must_hold_what_running_it_needs,
    whole_bundles_have_every_message,
    a_cache_weighs_windows_only,
);

/// A line of so many sessions of one message each, each named by its index.
async fn line(fixture: &Fixture, length: usize) -> Vec<Arc<Bundle>> {
    let mut line: Vec<Arc<Bundle>> = Vec::new();
    for index in 0..length {
        let commit = fixture.commit(line.last(), &[&index.to_string()]);
        line.push(fixture.publish(&commit).await);
    }
    line
}

async fn publish(fixture: &Fixture, parent: &Arc<Bundle>, messages: Vec<Arc<Message>>) -> Arc<Bundle> {
    fixture.publish(&fixture.commit_of(Some(parent), messages)).await
}

fn texts<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Vec<String> {
    messages.into_iter().map(|message| message.joined_text()).collect()
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Loads a session, which must equal what the commit returned; returns the start of its window and
/// its texts.
async fn window(fixture: &Fixture, bundle: &Bundle) -> (usize, Vec<String>) {
    let loaded = fixture.load(bundle.head.session_id).await;
    assert_eq!(loaded, *bundle);
    assert_eq!(loaded.head.history_start, loaded.history.first_index() as u64);
    assert_eq!(loaded.head.message_count, loaded.history.len() as u64);
    (loaded.history.first_index(), texts(loaded.history.iter()))
}

/// Deletes the segments that end before the index.
async fn lose_before(fixture: &Fixture, index: usize) {
    let delete = format!("delete from history_segments where first_index + message_count <= {index}");
    fixture.execute(&delete).await;
}

async fn a_compacted_line_loads_only_its_tail(fixture: Fixture) {
    let line = line(&fixture, 40).await;
    let compacted = publish(&fixture, &line[39], vec![user("40"), summary("first 38", 0, 38)]).await;
    let tip = fixture.child(&compacted, &["42"]).await;
    assert_eq!(
        (tip.head.depth, tip.head.message_count, tip.head.history_start),
        (41, 43, 38)
    );
    // The whole line is still one branch.
    assert_eq!(fixture.count("history_branches").await, 1);
    lose_before(&fixture, 38).await;
    let shown = ["38", "39", "40", "first 38", "42"];
    assert_eq!(window(&fixture, &compacted).await, (38, owned(&shown[..4])));
    assert_eq!(window(&fixture, &tip).await, (38, owned(&shown)));
    let next = fixture
        .child(&Arc::new(fixture.load(tip.head.session_id).await), &["43"])
        .await;
    assert_eq!(window(&fixture, &next).await.0, 38);
    let page = fixture
        .store
        .message_list(&fixture.tenant, next.head.session_id, 38..44)
        .await;
    assert_eq!(page.unwrap().unwrap().len(), 6);
    let listed = fixture
        .store
        .segment_list(&fixture.tenant, next.head.session_id, 38, 9)
        .await;
    assert_eq!(listed.unwrap().unwrap().total, 44, "those are all");
    let whole = Sessions::new(Arc::clone(&fixture.store), 0, Arc::new(SystemClock))
        .whole_bundle(&fixture.tenant, next.head.session_id)
        .await;
    assert!(matches!(whole.unwrap_err(), StoreError::Corrupt { .. }));
}

async fn forks_before_and_after_a_summary_load_what_they_need(fixture: Fixture) {
    let line = line(&fixture, 6).await;
    let compacted = publish(&fixture, &line[5], vec![summary("first 5", 0, 5)]).await;
    let tip = fixture.child(&compacted, &["7"]).await;
    let before = fixture.child(&line[5], &["fork before"]).await;
    let covered = fixture.child(&line[2], &["fork of a covered one"]).await;
    let after = fixture.child(&compacted, &["fork after"]).await;
    let far = fixture.child(&after, &["and on"]).await;
    let other = publish(&fixture, &line[5], vec![summary("first 2", 0, 2)]).await;
    for (bundle, start, shown) in [
        (&tip, 5, &["5", "first 5", "7"][..]),
        (&before, 0, &["0", "1", "2", "3", "4", "5", "fork before"]),
        (&covered, 0, &["0", "1", "2", "fork of a covered one"]),
        (&after, 5, &["5", "first 5", "fork after"]),
        (&far, 5, &["5", "first 5", "fork after", "and on"]),
        (&other, 2, &["2", "3", "4", "5", "first 2"]),
    ] {
        assert_eq!(window(&fixture, bundle).await, (start, owned(shown)));
        let report = fixture
            .store
            .session_verify(&fixture.tenant, bundle.head.session_id)
            .await;
        let report = report.unwrap().unwrap();
        assert_eq!((report.messages, report.faults), (bundle.head.message_count, vec![]));
    }
}

/// Segments of none to three messages on three branches; a summary up to each of the indexes.
async fn a_window_may_begin_anywhere_on_its_line(fixture: Fixture) {
    let mut tip = fixture.root(&["0", "1"]).await;
    for texts in [&[][..], &["2", "3", "4"], &[], &["5"], &["6"], &[], &["7", "8"]] {
        let parent = Arc::clone(&tip);
        tip = fixture.child(&parent, texts).await;
        if matches!(texts.first(), Some(&("2" | "6"))) {
            // What comes next finds its place taken and opens a branch.
            fixture.child(&tip, &["aside"]).await;
        }
    }
    assert_eq!(tip.head.position.position, 1, "on the third branch");
    for to in 1..=9_u64 {
        let bundle = publish(&fixture, &tip, vec![summary("so far", 0, to)]).await;
        let mut shown: Vec<String> = (to..9).map(|index| index.to_string()).collect();
        shown.push("so far".to_owned());
        assert_eq!(window(&fixture, &bundle).await, (usize::try_from(to).unwrap(), shown));
    }
}

async fn a_newer_summary_moves_the_window(fixture: Fixture) {
    let root = fixture.root(&["0", "1", "2", "3"]).await;
    let first = publish(&fixture, &root, vec![summary("a", 0, 2), user("5")]).await;
    let second = publish(&fixture, &first, vec![summary("b", 2, 5), user("7")]).await;
    // Two in one session: the last one counts. It may cover all before itself.
    let third = publish(&fixture, &second, vec![summary("c", 0, 6), summary("d", 6, 9)]).await;
    for (bundle, start, shown) in [
        (&first, 2, &["2", "3", "a", "5"][..]),
        (&second, 5, &["5", "b", "7"]),
        (&third, 9, &["d"]),
    ] {
        assert_eq!(window(&fixture, bundle).await, (start, owned(shown)));
    }
}

async fn calls_stay_with_their_results(fixture: Fixture) {
    let root = publish_root(&fixture, vec![user("0"), call("a"), result("a"), user("3")]).await;
    for to in [1, 3, 4] {
        let bundle = publish(&fixture, &root, vec![summary("s", 0, to)]).await;
        assert_eq!(window(&fixture, &bundle).await.0 as u64, to);
    }
    let commit = fixture.commit_of(Some(&root), vec![summary("s", 0, 2)]);
    refused(&fixture, &commit).await;
    // The result may be in the session that adds the summary, too.
    let messages = vec![call("b"), result("b"), summary("s", 0, 5)];
    let commit = fixture.commit_of(Some(&root), messages);
    refused(&fixture, &commit).await;
}

async fn publish_root(fixture: &Fixture, messages: Vec<Arc<Message>>) -> Arc<Bundle> {
    fixture.publish(&fixture.commit_of(None, messages)).await
}

async fn refused(fixture: &Fixture, commit: &store::sessions::Commit) {
    let before = fixture.count("history_segments").await;
    let error = fixture.store.session_commit(commit).await.unwrap_err();
    assert!(
        matches!(error, CommitError::Store(StoreError::Failed { .. })),
        "{error:?}"
    );
    assert_eq!(fixture.count("history_segments").await, before);
    let id = commit.draft.session_id;
    assert_eq!(fixture.head(id).await, None);
}

async fn bad_coverages_are_refused(fixture: Fixture) {
    let root = fixture.root(&["0", "1", "2", "3"]).await;
    let compacted = publish(&fixture, &root, vec![summary("a", 0, 3)]).await;
    let mut elsewhere = (*summary("a", 0, 1)).clone();
    elsewhere.tags.section = values::message::Section::default();
    for (parent, message) in [
        (&root, Arc::new(elsewhere)),
        (&root, summary("empty", 2, 2)),
        (&root, summary("covers itself", 0, 5)),
        (&root, summary("far", 0, u64::MAX)),
        (&root, summary("leaves out the first", 1, 3)),
        (&compacted, summary("goes back", 0, 2)),
        (&compacted, summary("leaves one out", 4, 5)),
        (&compacted, summary("covers itself", 0, 6)),
    ] {
        refused(&fixture, &fixture.commit_of(Some(parent), vec![message])).await;
    }
}

async fn a_draft_must_hold_what_running_it_needs(fixture: Fixture) {
    let line = line(&fixture, 4).await;
    let compacted = publish(&fixture, &line[3], vec![summary("a", 0, 2)]).await;
    for (parent, held_from) in [(&line[3], 1), (&compacted, 3), (&compacted, 6)] {
        let mut commit = fixture.commit(Some(parent), &["next"]);
        commit.draft.history = commit.draft.history.held_from(held_from);
        refused(&fixture, &commit).await;
    }
    // More than is needed does no harm, and is not kept.
    let mut commit = fixture.commit(Some(&compacted), &["next"]);
    let whole = whole(&fixture, compacted.head.session_id).await;
    commit.draft.history = whole
        .history
        .clone()
        .with_messages(commit.draft.new_messages().cloned());
    let next = fixture.publish(&commit).await;
    assert_eq!(window(&fixture, &next).await, (2, owned(&["2", "3", "a", "next"])));
    commit = fixture.commit(Some(&whole), &["next"]);
    let next = fixture.publish(&commit).await;
    assert_eq!(window(&fixture, &next).await.0, 2);
}

async fn whole(fixture: &Fixture, session_id: SessionId) -> Arc<Bundle> {
    let sessions = Sessions::new(Arc::clone(&fixture.store), 0, Arc::new(SystemClock));
    sessions
        .whole_bundle(&fixture.tenant, session_id)
        .await
        .unwrap()
        .unwrap()
}

async fn whole_bundles_have_every_message(fixture: Fixture) {
    let line = line(&fixture, 5).await;
    let compacted = publish(&fixture, &line[4], vec![summary("a", 0, 4)]).await;
    let left = fixture.child(&compacted, &["left"]).await;
    let right = fixture.child(&line[1], &["right"]).await;
    let sessions = Sessions::new(Arc::clone(&fixture.store), 1 << 20, Arc::new(SystemClock));
    let session_id = left.head.session_id;
    for _ in 0..2 {
        let whole = sessions
            .whole_bundle(&fixture.tenant, session_id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(whole.head, left.head);
        assert_eq!(whole.history.first_index(), 0);
        assert_eq!(texts(whole.history.iter()), ["0", "1", "2", "3", "4", "a", "left"]);
        // What is kept is what running needs.
        let retained = sessions.bundle(&fixture.tenant, session_id).await.unwrap().unwrap();
        assert_eq!(retained, left);
    }
    let none = test_support::drafts::session_id();
    assert_eq!(sessions.whole_bundle(&fixture.tenant, none).await.unwrap(), None);
    let (left, right) = (
        whole(&fixture, session_id).await,
        whole(&fixture, right.head.session_id).await,
    );
    let diff = diff_bundles(&left, &right).unwrap();
    assert_eq!(diff.shared_messages, 2);
    assert_eq!(texts(&diff.left_messages), ["2", "3", "4", "a", "left"]);
    assert_eq!(texts(&diff.right_messages), ["right"]);
}

async fn a_cache_weighs_windows_only(fixture: Fixture) {
    let text = "x".repeat(64 << 10);
    let sessions = Sessions::new(Arc::clone(&fixture.store), 64 << 20, Arc::new(SystemClock));
    let root = sessions.commit(&fixture.commit(None, &[&text])).await.unwrap();
    let of_root = sessions.cached_bytes();
    let commit = fixture.commit_of(Some(&root), vec![user("short"), summary("s", 0, 1)]);
    let compacted = sessions.commit(&commit).await.unwrap();
    let of_two = sessions.cached_bytes();
    assert!(of_two - of_root < 16 << 10, "{of_two}, {of_root}");
    let tip = sessions
        .commit(&fixture.commit(Some(&compacted), &[&text]))
        .await
        .unwrap();
    let of_three = sessions.cached_bytes();
    assert!(
        (64 << 10..80 << 10).contains(&(of_three - of_two)),
        "{of_three}, {of_two}"
    );
    let cold = Sessions::new(Arc::clone(&fixture.store), 64 << 20, Arc::new(SystemClock));
    assert_eq!(
        cold.bundle(&fixture.tenant, tip.head.session_id)
            .await
            .unwrap()
            .unwrap(),
        tip
    );
    assert!(
        (64 << 10..80 << 10).contains(&cold.cached_bytes()),
        "{}",
        cold.cached_bytes()
    );
}
