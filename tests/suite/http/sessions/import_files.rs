//! Imports of sessions whose environment refers to files.

use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use store::{Store, open};
use test_support::databases::TestDatabase;
use values::session::{Hash, hash_directory};
use values::tenant::TenantId;
use workspace::{Content, ContentKind};

use crate::http::service::Service;
use crate::support::answer::{Answer, read};
use crate::support::test_app::session_path;
use crate::support::text::assert_contains;

on_every_store! {
    files_that_are_stored_here_come_with_the_session,
    files_that_are_not_stored_here_are_refused,
    what_is_no_tree_is_refused,
    the_limits_of_workspaces_hold_for_trees_from_elsewhere,
}

async fn files_that_are_stored_here_come_with_the_session(service: &Service) {
    let first = service.run_with(json!({"input": "hi"})).await;
    let path = session_path(&first, "/files");
    let large = "0123456789abcdef".repeat(150_000);
    let changes = json!({"changes": [{"path": "a/b", "content": "text"}, {"path": "large", "content": large}]});
    let child = service.post(&path, &changes).await.ok();
    let child = service.get(&session_path(&child, "")).await;
    let environment = &child["environment_state"];
    assert!(environment["workspace"]["tree"].is_string(), "{environment}");
    let made = service
        .post("/v1/sessions", &json!({"environment_state": environment}))
        .await;
    assert_eq!(made.status, 201);
    let made = made.ok();
    let path = session_path(&made, "");
    assert_eq!(service.get(&format!("{path}/verify")).await["valid"], true);
    assert_eq!(service.get(&path).await["environment_state"], *environment);
}

async fn files_that_are_not_stored_here_are_refused(service: &Service) {
    let workspace = json!({"tree": "0".repeat(64)});
    let body = json!({"environment_state": {"workspace": workspace}});
    let answer = service.post("/v1/sessions", &body).await;
    answer.assert_problem("invalid_field");
    let problem = answer.json();
    assert_eq!(
        problem["errors"][0]["pointer"], "/environment_state/workspace/tree",
        "{problem:#}"
    );
}

async fn store_of(service: &Service) -> Arc<dyn Store> {
    let opened = open(service.database.url(), TestDatabase::settings()).await;
    opened.unwrap()
}

/// Stores a directory as no request can, and returns its hash.
async fn forged(store: &Arc<dyn Store>, encoded: Vec<u8>) -> String {
    let hash = hash_directory(&encoded);
    let content = Content {
        hash,
        kind: ContentKind::Directory,
        bytes: encoded.into(),
    };
    store.content_put(&TenantId::anonymous(), &[content]).await.unwrap();
    hash.to_string()
}

/// Encodes a file of one byte, whose size is a lie if it is not 1.
fn file(name: &str, size: u8) -> Vec<u8> {
    let hash = blake3::hash(b"x");
    [
        &[0, u8::try_from(name.len()).unwrap()][..],
        name.as_bytes(),
        hash.as_bytes(),
        &[size],
    ]
    .concat()
}

fn directory(name: &str, hash: &str, totals: &[u8]) -> Vec<u8> {
    let hash: Hash = hash.parse().unwrap();
    [
        &[3, u8::try_from(name.len()).unwrap()][..],
        name.as_bytes(),
        hash.as_bytes(),
        totals,
    ]
    .concat()
}

fn root(entries: &[Vec<u8>]) -> Vec<u8> {
    [vec![1, 0], entries.concat()].concat()
}

async fn import(service: &Service, tree: &str) -> Answer {
    let body = json!({"environment_state": {"workspace": {"tree": tree}}});
    service.post("/v1/sessions", &body).await
}

async fn what_is_no_tree_is_refused(service: &Service) {
    for bytes in [&b"x"[..], b"some text", b"", b"{}"] {
        let hash = blake3::hash(bytes).to_string();
        let request = service.request(Method::PUT, &format!("/v1/blobs/{hash}"));
        assert_eq!(read(request.body(bytes.to_vec())).await.status, 201);
        import(service, &hash).await.assert_problem("invalid_field");
    }
    let store = store_of(service).await;
    let below = forged(&store, root(&[file("f", 1)])).await;
    let link = |target: &str| {
        [
            &[2, 1, b'l', u8::try_from(target.len()).unwrap()][..],
            target.as_bytes(),
        ]
        .concat()
    };
    let mut deep = below.clone();
    for level in 0..70 {
        deep = forged(&store, root(&[directory("d", &deep, &[1, level, 1])])).await;
    }
    let faults = [
        ("a wrong size", root(&[file("f", 2)])),
        ("a name that is a path", root(&[file("a/b", 1)])),
        ("a name that leads up", root(&[file("..", 1)])),
        ("wrong totals", root(&[directory("d", &below, &[0, 0, 0])])),
        ("a link that leads out", root(&[link("../../etc/passwd")])),
        (
            "a directory that is a file",
            root(&[directory("d", &blake3::hash(b"x").to_string(), &[0, 0, 0])]),
        ),
        ("many levels", root(&[directory("d", &deep, &[1, 70, 1])])),
    ];
    for (what, encoded) in faults {
        let tree = forged(&store, encoded).await;
        let answer = import(service, &tree).await;
        answer.assert_problem("invalid_field");
        let problem = answer.json();
        assert_eq!(
            problem["errors"][0]["pointer"], "/environment_state/workspace/tree",
            "{what}: {problem:#}"
        );
        assert_contains!(answer.text(), "this is no tree of files: "; "{what}");
    }
    assert_eq!(import(service, &below).await.status, 201);
    store.close().await;
}

async fn the_limits_of_workspaces_hold_for_trees_from_elsewhere(service: &Service) {
    let request = service.request(Method::PUT, &format!("/v1/blobs/{}", blake3::hash(b"x")));
    read(request.body("x")).await;
    // The same 50 files under 50 names, at three levels: 6,250,000 files in few contents.
    let store = store_of(service).await;
    let names: Vec<String> = (0..50).map(|number| format!("n{number:02}")).collect();
    let mut tree = forged(
        &store,
        root(&names.iter().map(|name| file(name, 1)).collect::<Vec<_>>()),
    )
    .await;
    let (mut files, mut directories) = (50, 0);
    for level in 0..3 {
        let totals = [varint(files), varint(directories), varint(files)].concat();
        let entries: Vec<_> = names.iter().map(|name| directory(name, &tree, &totals)).collect();
        tree = forged(&store, root(&entries)).await;
        (files, directories) = (files * 50, (directories + 1) * 50);
        let answer = import(service, &tree).await;
        if level == 0 {
            assert_eq!(answer.status, 201);
        } else {
            assert!(answer.text().contains("more than 50000 files"), "{}", answer.text());
        }
    }
    assert_eq!(files, 6_250_000);
    store.close().await;
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 127 {
        bytes.push(u8::try_from(number & 127).unwrap() | 128);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}
