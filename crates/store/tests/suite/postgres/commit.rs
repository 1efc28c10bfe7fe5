//! How many statements commits and loads take on PostgreSQL, and how many segments a load reads.

use test_support::drafts::summary;
use test_support::logs::listen;
use test_support::statements::Statements;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use super::plans::rows_read;
use crate::fixtures::{Fixture, postgres};

// One thread, so that the subscriber of this thread sees all of the driver's work.
#[tokio::test(flavor = "current_thread")]
async fn a_load_takes_two_statements_and_a_commit_one() {
    let Some(fixture) = Fixture::on_one_connection().await else {
        return;
    };
    let root = fixture.root(&["root"]).await;
    let mut tip = fixture.child(&root, &["child"]).await;
    for turn in 0..15 {
        let parent = if turn % 5 == 0 { &root } else { &tip };
        tip = fixture.child(parent, &["more"]).await;
    }
    let append = fixture.commit(Some(&tip), &["append"]);
    let fork = fixture.commit(Some(&root), &["fork"]);
    let fresh = fixture.commit(None, &["fresh"]);
    let long = fixture.child(&root, &["long"]).await;
    let compacted = fixture.commit_of(Some(&long), vec![summary("all", 0, 2)]);

    let statements = Statements::default();
    let _listening = listen(Registry::default().with(statements.clone()));
    let taken = |expected: usize, what: &str| {
        assert_eq!(statements.taken(), expected, "{what}");
    };
    fixture.load(tip.head.session_id).await;
    taken(2, "load");
    fixture.publish(&fresh).await;
    taken(1, "commit without parent");
    fixture.publish(&append).await;
    taken(1, "commit at a tip");
    fixture.publish(&fork).await;
    taken(2, "commit of a fork");
    let compacted = fixture.publish(&compacted).await;
    taken(1, "commit of a summary");
    fixture.load(compacted.head.session_id).await;
    taken(2, "load of a compacted line");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_of_a_compacted_line_and_a_page_read_few_segments() {
    let Some(fixture) = postgres().await else { return };
    let mut tip = fixture.root(&["0"]).await;
    for turn in 1..600 {
        tip = fixture.child(&tip, &[&turn.to_string()]).await;
    }
    let fork = fixture.child(&tip, &["fork"]).await;
    let commit = fixture.commit_of(Some(&fork), vec![summary("all", 0, 597)]);
    let compacted = fixture.publish(&commit).await;
    let mut other = fixture.child(&tip, &["other"]).await;
    for _ in 0..300 {
        other = fixture.child(&other, &["more"]).await;
    }
    let segments_read = async |session_id| {
        rows_read(&fixture, "'history_segments'", async |store| {
            store.bundle_load(&fixture.tenant, session_id).await.unwrap().unwrap();
        })
        .await
    };
    let read = segments_read(tip.head.session_id).await;
    assert!((600..=602).contains(&read), "{read}");
    // The search halves 602 places ten times at most, at both ends, and there are five segments
    // from index 597 on.
    let read = segments_read(compacted.head.session_id).await;
    assert!((5..=30).contains(&read), "{read}");
    for from in [0, 300, 590] {
        let read = rows_read(&fixture, "'history_segments'", async |store| {
            let list = store.segment_list(&fixture.tenant, tip.head.session_id, from, 3).await;
            let list = list.unwrap().unwrap();
            assert_eq!(list.segments.len(), 3);
            let end = list.segments[2].first_index + 1;
            let page = store
                .message_list(&fixture.tenant, tip.head.session_id, from..end)
                .await;
            assert_eq!(page.unwrap().unwrap().len(), 3);
        })
        .await;
        // Three segments and the first one, twice, each time after a search of ten steps at both
        // ends.
        assert!((6..=48).contains(&read), "{from}: {read}");
        let read = rows_read(&fixture, "'history_segments', 'sessions'", async |store| {
            let id = tip.head.session_id;
            let added_by = store.session_lookup_by_message(&fixture.tenant, id, from).await;
            let depth = added_by.unwrap().map(|ancestor| ancestor.depth());
            assert_eq!(depth, Some(from));
        })
        .await;
        // One segment and the first one after such a search, and two sessions.
        assert!((2..=30).contains(&read), "{from}: {read}");
    }
}
