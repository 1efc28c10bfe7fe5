//! Callers that are cancelled at any moment leave whole sessions or none, and connections that
//! work.

use std::time::Duration;

use store::Page;
use store::sessions::SessionFilter;
use test_support::databases::Engine;
use tokio::time::timeout;

use crate::fixtures::Fixture;

on_both_engines!(cancelled_callers_break_no_connection);

async fn cancelled_callers_break_no_connection(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    for turn in 0..60_u64 {
        let commits = [
            fixture.commit(Some(&root), &["leaving"]),
            fixture.commit(None, &["leaving"]),
        ];
        let work = async {
            for commit in &commits {
                fixture.store.session_commit(commit).await.unwrap();
                fixture.load(commit.draft.session_id).await;
            }
        };
        // From before the first packet to after the last one.
        let left = timeout(Duration::from_micros(turn * turn * 7), work).await;
        drop(left);
    }
    for _ in 0..8 {
        let retained = fixture.child(&root, &["staying"]).await;
        assert_eq!(fixture.load(retained.head.session_id).await, *retained);
    }
    if fixture.database.engine == Engine::Postgres {
        let idle = "select count(*) from pg_stat_activity
            where datname = current_database() and state like 'idle in transaction%'";
        assert_eq!(fixture.database.number(idle).await, 0);
    }
    let page = Page {
        before: None,
        limit: 500,
    };
    let heads = fixture
        .store
        .session_list(&fixture.tenant, &SessionFilter::default(), page)
        .await
        .unwrap();
    for head in &heads {
        assert_eq!(fixture.load(head.session_id).await.head, *head);
    }
    assert_eq!(fixture.count("history_segments").await, fixture.count("sessions").await);
    assert_eq!(fixture.count("runs").await, fixture.count("sessions").await);
    timeout(Duration::from_secs(10), fixture.store.close()).await.unwrap();
}
