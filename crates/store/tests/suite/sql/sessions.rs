//! Lists page by key without gap or repeat, filter, and read no payload.

use std::sync::Arc;

use serde_json::json;
use store::retention::Ancestor;
use store::runs::RunFilter;
use store::sessions::{SessionFilter, SessionTree};
use store::{Page, TimeRange};
use test_support::drafts::{object, run_of, session_id, tenant};
use values::ids::SessionId;
use values::session::{Bundle, SessionHead};

use crate::fixtures::Fixture;

on_both_engines!(
    sessions_page_to_the_end,
    trees_page_to_the_end,
    sessions_filter,
    metadata_filters_compare_whole_values,
    metadata_filters_distinguish_large_integers,
    a_lineage_pages_to_the_root,
    lists_read_no_payload,
);

async fn page_through(fixture: &Fixture, filter: &SessionFilter) -> Vec<SessionId> {
    let mut page = Page { before: None, limit: 4 };
    let mut seen = Vec::new();
    loop {
        let heads = fixture.store.session_list(&fixture.tenant, filter, page).await.unwrap();
        assert!(heads.len() <= 4);
        let Some(last) = heads.last() else { return seen };
        page.before = Some(last.session_id);
        seen.extend(heads.iter().map(|head| head.session_id));
    }
}

fn ids(bundles: &[Arc<Bundle>]) -> Vec<SessionId> {
    let mut ids: Vec<_> = bundles.iter().map(|bundle| bundle.head.session_id).collect();
    ids.sort();
    ids.reverse();
    ids
}

async fn sessions_page_to_the_end(fixture: Fixture) {
    let mut all = vec![fixture.root(&["root"]).await];
    for turn in 0..12 {
        let parent = Arc::clone(&all[turn / 2]);
        all.push(fixture.child(&parent, &["more"]).await);
    }
    assert_eq!(page_through(&fixture, &SessionFilter::default()).await, ids(&all));
    let none = Page { before: None, limit: 0 };
    assert_eq!(
        fixture
            .store
            .session_list(&fixture.tenant, &SessionFilter::default(), none)
            .await
            .unwrap(),
        []
    );
}

async fn trees_page_to_the_end(fixture: Fixture) {
    let mut newest = Vec::new();
    for turn in 0..5 {
        let root = fixture.root(&["root"]).await;
        let mut last = Arc::clone(&root);
        for _ in 0..turn {
            last = fixture.child(&root, &["child"]).await;
        }
        newest.insert(0, (root, last));
    }
    for number in (0..12).rev() {
        let name = format!("t{number:02}").parse().unwrap();
        fixture.move_thread(&name, newest[0].1.head.session_id).await;
    }
    let page = Page { before: None, limit: 2 };
    let mut seen: Vec<SessionTree> = Vec::new();
    loop {
        let before = seen.last().map(|tree| tree.oldest.root_session_id);
        let page = Page { before, ..page };
        let trees = fixture.store.tree_list(&fixture.tenant, page).await.unwrap();
        assert!(trees.len() <= 2);
        if trees.is_empty() {
            break;
        }
        seen.extend(trees);
    }
    assert_eq!(seen.len(), 5);
    for (number, (tree, (root, last))) in seen.iter().zip(&newest).enumerate() {
        assert_eq!(tree.oldest, root.head);
        assert_eq!(tree.figures.session_count, 5 - number as u64);
        assert_eq!(tree.figures.last_activity_at, last.head.created_at);
    }
    let names: Vec<_> = seen[0].figures.threads.iter().map(ToString::to_string).collect();
    let expected: Vec<_> = (0..10).map(|number| format!("t{number:02}")).collect();
    assert_eq!((names, &seen[1].figures.threads), (expected, &Vec::new()));
    assert_eq!(fixture.store.tree_list(&tenant("other"), page).await.unwrap(), []);
}

async fn sessions_filter(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let child = fixture.child(&root, &["child"]).await;
    let fork = fixture.child(&root, &["fork"]).await;
    let mut commit = fixture.commit(Some(&child), &["other agent"]);
    "other".clone_into(&mut commit.draft.agent);
    commit.run = Some(run_of(&commit.draft));
    let other = fixture.publish(&commit).await;
    let all = [&root, &child, &fork, &other].map(Arc::clone);
    let cases = [
        (
            SessionFilter {
                agent: Some("other".to_owned()),
                ..SessionFilter::default()
            },
            vec![3],
        ),
        (
            SessionFilter {
                agent: Some("\u{0}".to_owned()),
                ..SessionFilter::default()
            },
            vec![],
        ),
        (
            SessionFilter {
                root: Some(root.head.session_id),
                agent: Some("demo".to_owned()),
                ..SessionFilter::default()
            },
            vec![0, 1, 2],
        ),
        (
            SessionFilter {
                root: Some(child.head.session_id),
                ..SessionFilter::default()
            },
            vec![],
        ),
        (
            SessionFilter {
                parent: Some(root.head.session_id),
                ..SessionFilter::default()
            },
            vec![1, 2],
        ),
        (
            SessionFilter {
                tips_only: true,
                ..SessionFilter::default()
            },
            vec![2, 3],
        ),
        (
            SessionFilter {
                created: TimeRange {
                    from: Some(child.head.created_at),
                    until: Some(other.head.created_at),
                },
                ..SessionFilter::default()
            },
            vec![1, 2],
        ),
        (
            SessionFilter {
                tips_only: true,
                parent: Some(root.head.session_id),
                ..SessionFilter::default()
            },
            vec![2],
        ),
    ];
    for (filter, expected) in cases {
        let expected: Vec<_> = expected
            .into_iter()
            .map(|index: usize| Arc::clone(&all[index]))
            .collect();
        assert_eq!(page_through(&fixture, &filter).await, ids(&expected), "{filter:?}");
    }
}

async fn metadata_filters_compare_whole_values(fixture: Fixture) {
    let with = async |metadata: serde_json::Value| {
        let mut commit = fixture.commit(None, &["root"]);
        commit.draft.context.metadata = object(metadata);
        fixture.publish(&commit).await
    };
    let rich = with(json!({"a": {"b": 1, "c": 2}, "n": 1, "t": true, "s": "ä'\"", "l": [1, 2], "z": null})).await;
    let poor = with(json!({"n": 2})).await;
    with(json!({})).await;
    let both = [Arc::clone(&rich), poor];
    for (filter, expected) in [
        (json!({"n": 1}), &both[..1]),
        (json!({"n": 2}), &both[1..]),
        (json!({"n": 1, "t": true}), &both[..1]),
        (json!({"n": 2, "t": true}), &[]),
        (json!({"n": "1"}), &[]),
        (json!({"t": 1}), &[]),
        (json!({"s": "ä'\""}), &both[..1]),
        (json!({"a": {"c": 2, "b": 1}}), &both[..1]),
        (json!({"a": {"b": 1}}), &[]),
        (json!({"l": [1, 2]}), &both[..1]),
        (json!({"l": [2]}), &[]),
        (json!({"z": null}), &both[..1]),
        (json!({"y": null}), &[]),
        (json!({"s": "\u{0}"}), &[]),
    ] {
        let filter = SessionFilter {
            metadata: object(filter),
            ..SessionFilter::default()
        };
        assert_eq!(page_through(&fixture, &filter).await, ids(expected), "{filter:?}");
    }
}

async fn metadata_filters_distinguish_large_integers(fixture: Fixture) {
    const INTEGERS: [u64; 6] = [1 << 62, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
    let forms: [fn(u64) -> serde_json::Value; 3] = [
        |integer| json!({"n": integer}),
        |integer| json!({"l": [1, {"m": integer, "x": 2}]}),
        |integer| json!({"a.\"b\\": integer, "c": {"d.\"e\\": [integer]}}),
    ];
    for form in forms {
        let mut sessions = Vec::new();
        for integer in INTEGERS {
            let mut commit = fixture.commit(None, &["root"]);
            commit.draft.context.metadata = object(form(integer));
            sessions.push(fixture.publish(&commit).await);
        }
        for (integer, session) in INTEGERS.into_iter().zip(&sessions) {
            let filter = SessionFilter {
                metadata: object(form(integer)),
                ..SessionFilter::default()
            };
            let expected = ids(std::slice::from_ref(session));
            assert_eq!(page_through(&fixture, &filter).await, expected, "{filter:?}");
        }
    }
    let mut commit = fixture.commit(None, &["root"]);
    commit.draft.context.metadata = object(json!({"f": 10_000_000_000_000_000_000_u64}));
    let written = fixture.publish(&commit).await;
    let filter = SessionFilter {
        metadata: object(json!({"f": 1e19})),
        ..SessionFilter::default()
    };
    assert_eq!(page_through(&fixture, &filter).await, ids(&[written]));
}

/// The session, which must not have been removed.
fn retained(ancestor: Ancestor) -> SessionHead {
    let Ancestor::Retained(head) = ancestor else {
        panic!("{ancestor:?}")
    };
    head
}

async fn a_lineage_pages_to_the_root(fixture: Fixture) {
    let mut line = vec![fixture.root(&["root"]).await];
    for turn in 1..11 {
        let parent = Arc::clone(&line[turn - 1]);
        // Every third session is a fork, so the line crosses branches.
        if turn % 3 == 0 {
            fixture.child(&parent, &["aside"]).await;
        }
        line.push(fixture.child(&parent, &["more"]).await);
    }
    let tip = line[10].head.session_id;
    let lineage = async |before, limit| {
        let page = Page { before, limit };
        fixture.store.session_lineage(&fixture.tenant, tip, page).await.unwrap()
    };
    let mut seen: Vec<SessionHead> = Vec::new();
    loop {
        let heads = lineage(seen.last().map(|head| head.session_id), 4).await.unwrap();
        if heads.is_empty() {
            break;
        }
        seen.extend(heads.into_iter().map(retained));
    }
    let expected: Vec<_> = line.iter().rev().map(|bundle| bundle.head.clone()).collect();
    assert_eq!(seen, expected);
    assert_eq!(lineage(None, 0).await, Some(vec![]));
    let page = Page { before: None, limit: 4 };
    assert_eq!(
        fixture
            .store
            .session_lineage(&fixture.tenant, session_id(), page)
            .await
            .unwrap(),
        None
    );
    let added_by = async |id, index| {
        let found = fixture.store.session_lookup_by_message(&fixture.tenant, id, index);
        found.await.unwrap().map(retained)
    };
    for (index, bundle) in (0..).zip(&line) {
        assert_eq!(added_by(tip, index).await.as_ref(), Some(&bundle.head), "{index}");
    }
    assert_eq!((added_by(tip, 11).await, added_by(session_id(), 0).await), (None, None));
    // A session beside the line is no place to go on from.
    let beside = fixture.child(&line[5], &["beside"]).await;
    assert_eq!(lineage(Some(beside.head.session_id), 4).await, Some(vec![]));
    assert_eq!(lineage(Some(session_id()), 4).await, Some(vec![]));
}

async fn lists_read_no_payload(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let child = fixture.child(&root, &["child"]).await;
    let id = child.head.session_id;
    for (table, column) in [
        ("history_segments", "payload"),
        ("states", "payload"),
        ("runs", "output"),
        ("runs", "steps"),
    ] {
        fixture
            .execute(&format!(
                "alter table {table} rename column {column} to hidden_{column}"
            ))
            .await;
    }
    assert!(
        fixture.store.bundle_load(&fixture.tenant, id).await.is_err(),
        "the payloads are out of reach"
    );
    let page = Page {
        before: None,
        limit: 10,
    };
    let heads = [child.head.clone(), root.head.clone()];
    let listed = fixture
        .store
        .session_list(&fixture.tenant, &SessionFilter::default(), page)
        .await
        .unwrap();
    assert_eq!(listed, heads);
    let trees = fixture.store.tree_list(&fixture.tenant, page).await.unwrap();
    assert_eq!(
        trees.into_iter().map(|tree| tree.oldest).collect::<Vec<_>>(),
        heads[1..]
    );
    let lineage = fixture
        .store
        .session_lineage(&fixture.tenant, id, page)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(lineage.into_iter().map(retained).collect::<Vec<_>>(), heads);
    assert_eq!(fixture.head(id).await, Some(child.head.clone()));
    let page = Page {
        before: None,
        limit: 10,
    };
    assert_eq!(
        fixture
            .store
            .run_list(&fixture.tenant, &RunFilter::default(), page)
            .await
            .unwrap()
            .len(),
        2
    );
    assert!(
        fixture
            .store
            .run_lookup_by_session(&fixture.tenant, id)
            .await
            .unwrap()
            .is_some()
    );
}
