//! Contents in an object store: they are found where their rows say, and nothing that is referred
//! to is ever lost.

use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::TimeDelta;
use futures_util::future::join_all;
use store::objects::{ObjectSettings, OpenObjectsError};
use store::{ContentSettings, OpenError, Store, StoreError, open_with};
use tempfile::TempDir;
use test_support::databases::TestDatabase;
use test_support::drafts::{now, tenant};
use test_support::workspaces::{directory, entry, file};
use values::clock::Timestamp;
use values::tenant::TenantId;
use workspace::{Content, ContentKind};

use super::contents::noise;
use super::retention::KEEP_ALL;
use crate::fixtures::Fixture;

on_both_engines!(
    large_files_are_objects_and_all_else_is_in_rows,
    a_store_needs_its_object_store,
    a_lost_or_damaged_object_is_an_error_of_its_content,
    a_sweep_removes_the_objects_of_removed_contents,
    what_a_crash_leaves_is_swept,
    a_removed_tenant_leaves_no_objects,
    writes_and_sweeps_at_once_lose_nothing,
);

/// A store whose large contents are objects.
struct Objects {
    fixture: Fixture,
    directory: TempDir,
}

pub(super) fn contents_in(url: &str, options: Vec<(&'static str, String)>) -> ContentSettings {
    let options = options
        .into_iter()
        .map(|(name, value)| (name.to_lowercase(), value.into()));
    ContentSettings {
        objects: Some(ObjectSettings {
            url: url.to_owned(),
            min_bytes: 10_000,
            options: options.collect(),
        }),
        ..ContentSettings::default()
    }
}

pub(super) async fn opened(fixture: &Fixture, url: &str, options: Vec<(&'static str, String)>) -> Arc<dyn Store> {
    let settings = contents_in(url, options);
    open_with(fixture.database.url(), TestDatabase::settings(), &settings)
        .await
        .unwrap()
}

impl Objects {
    async fn new(fixture: Fixture) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}/objects", directory.path().display());
        let store = opened(&fixture, &url, Vec::new()).await;
        Self {
            fixture: Fixture { store, ..fixture },
            directory,
        }
    }

    /// Returns the paths of the objects, relative to the directory.
    fn paths(&self) -> Vec<PathBuf> {
        fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found);
                } else {
                    found.push(path);
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.directory.path().join("objects"), &mut found);
        found.sort();
        found
    }

    async fn sweep(&self, now: Timestamp) -> u64 {
        self.fixture.sweep(KEEP_ALL, now, 10).await.contents
    }

    /// Counts the objects that no content refers to.
    async fn listed(&self) -> i64 {
        self.fixture.count("content_objects").await
    }

    async fn in_objects(&self) -> i64 {
        self.fixture.count("contents where encoding >= 64").await
    }
}

pub(super) fn later() -> Timestamp {
    now() + TimeDelta::hours(3)
}

pub(super) fn large(seed: u64) -> Content {
    file(noise(seed, 20_000))
}

pub(super) async fn load(fixture: &Fixture, content: &Content) -> Result<Option<Content>, StoreError> {
    load_from(&fixture.store, &fixture.tenant, content).await
}

pub(super) async fn load_from(
    store: &Arc<dyn Store>,
    tenant: &TenantId,
    content: &Content,
) -> Result<Option<Content>, StoreError> {
    let loaded = store.content_load(tenant, &[content.hash]).await;
    loaded.map(|mut loaded| loaded.remove(0))
}

pub(super) async fn put(fixture: &Fixture, content: &Content) -> Result<(), StoreError> {
    put_into(&fixture.store, &fixture.tenant, content).await
}

pub(super) async fn put_into(store: &Arc<dyn Store>, tenant: &TenantId, content: &Content) -> Result<(), StoreError> {
    store.content_put(tenant, std::slice::from_ref(content)).await
}

async fn large_files_are_objects_and_all_else_is_in_rows(fixture: Fixture) {
    let objects = Objects::new(fixture).await;
    let fixture = &objects.fixture;
    let small = file(noise(1, 9_999));
    let random = file(noise(2, 10_000));
    let text = file("text ".repeat(5_000));
    let list = Content {
        kind: ContentKind::Chunks,
        ..file(noise(3, 20_000))
    };
    let directory = Content {
        kind: ContentKind::Directory,
        ..file(noise(4, 20_000))
    };
    let all = [small, random.clone(), text, list, directory];
    fixture.put(&all).await;
    assert_eq!((objects.in_objects().await, objects.listed().await), (2, 0));
    let paths = objects.paths();
    assert_eq!(paths.len(), 2);
    let sizes: Vec<u64> = paths.iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    assert!(
        sizes.contains(&10_000) && sizes.iter().any(|size| *size < 1_000),
        "text is compressed: {sizes:?}"
    );
    let of_random = format!("/objects/acme/{}/", random.hash);
    assert!(
        paths.iter().any(|path| path.to_str().unwrap().contains(&of_random)),
        "{paths:?}"
    );

    let hashes: Vec<_> = all.iter().map(|content| content.hash).collect();
    let loaded = fixture.store.content_load(&fixture.tenant, &hashes).await.unwrap();
    assert_eq!(loaded, all.clone().map(Some));
    let total = fixture.store.content_total(&fixture.tenant).await.unwrap();
    assert_eq!(total, 9_999 + 10_000 + 25_000 + 20_000 + 20_000);
    // What is stored already is not written again.
    fixture.put(&all).await;
    assert_eq!((objects.paths(), objects.listed().await), (paths, 0));
    // Another tenant has its own object.
    let other = tenant("other");
    let other_load = async || {
        fixture
            .store
            .content_load(&other, &[random.hash])
            .await
            .unwrap()
            .remove(0)
    };
    assert_eq!(other_load().await, None);
    fixture
        .store
        .content_put(&other, std::slice::from_ref(&random))
        .await
        .unwrap();
    assert_eq!(other_load().await, Some(random.clone()));
    let path = objects.paths().pop().unwrap();
    let of_other = format!("/objects/other/{}/", random.hash);
    assert!(path.to_str().unwrap().contains(&of_other), "{}", path.display());
}

async fn a_store_needs_its_object_store(fixture: Fixture) {
    let objects = Objects::new(fixture).await;
    let fixture = &objects.fixture;
    let url = fixture.database.url();
    let plain = async || open_with(url, TestDatabase::settings(), &ContentSettings::default()).await;
    plain().await.unwrap().close().await;
    let small = file("small");
    fixture.put(&[large(1), small.clone()]).await;
    let refused = plain().await.unwrap_err();
    assert!(
        matches!(refused, OpenError::Objects(OpenObjectsError::NotConfigured)),
        "{refused}"
    );
    assert!(refused.to_string().contains("`store.objects.url`"), "{refused}");
    // The whole store can also use another object store for what is new.
    assert_eq!(load(fixture, &small).await.unwrap(), Some(small));
    assert_eq!(load(fixture, &large(1)).await.unwrap(), Some(large(1)));
}

async fn a_lost_or_damaged_object_is_an_error_of_its_content(fixture: Fixture) {
    let objects = Objects::new(fixture).await;
    let fixture = &objects.fixture;
    let content = large(1);
    let root = directory(&[("big", entry(&content))]);
    fixture.put(&[content.clone(), root.clone()]).await;
    let session = fixture.with_tree(root.hash).await.head.session_id;
    let verified = async || {
        let report = fixture.verify(session).await;
        let faults = report.faults.into_iter();
        faults.map(|fault| fault.detail).collect::<Vec<_>>()
    };
    assert_eq!(verified().await, [""; 0]);
    let path = objects.paths().remove(0);
    let bytes = fs::read(&path).unwrap();
    let mut changed = bytes.clone();
    changed[100] ^= 1;
    for (damage, words) in [
        (Some(changed), "has other bytes than the content"),
        (Some(bytes[..10_000].to_vec()), "has other bytes than the content"),
        (Some(Vec::new()), "has other bytes than the content"),
        (None, "the object store has no object"),
    ] {
        match damage {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let error = load(fixture, &content).await.unwrap_err();
        assert!(
            matches!(
                &error,
                StoreError::Corrupt {
                    table: "contents",
                    column: "payload",
                    ..
                }
            ),
            "{error}"
        );
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains(words), "{cause}");
        let faults = verified().await;
        assert!(
            faults.len() == 1 && faults[0].contains(words) && faults[0].contains("big"),
            "{faults:?}"
        );
    }
    fs::write(&path, bytes).unwrap();
    assert_eq!(load(fixture, &content).await.unwrap(), Some(content));
}

async fn a_sweep_removes_the_objects_of_removed_contents(fixture: Fixture) {
    let objects = Objects::new(fixture).await;
    let fixture = &objects.fixture;
    let needed = large(0);
    let root = directory(&[("big", entry(&needed))]);
    fixture.put(&[needed.clone(), root.clone()]).await;
    let session = fixture.with_tree(root.hash).await;
    let stray: Vec<Content> = (1..=25).map(large).collect();
    fixture.put(&stray).await;
    assert_eq!(objects.sweep(now() + TimeDelta::minutes(30)).await, 0);
    assert_eq!(objects.paths().len(), 26);
    assert_eq!(objects.sweep(later()).await, 25);
    assert_eq!((objects.paths().len(), objects.listed().await), (1, 0));
    assert_eq!(load(fixture, &needed).await.unwrap(), Some(needed));
    let report = fixture.verify(session.head.session_id).await;
    assert_eq!(report.faults, []);
    // Written again after its removal, a content has a new object.
    fixture.put(&stray[..1]).await;
    assert_eq!(load(fixture, &stray[0]).await.unwrap(), Some(stray[0].clone()));
    assert_eq!((objects.paths().len(), objects.listed().await), (2, 0));
}

async fn what_a_crash_leaves_is_swept(fixture: Fixture) {
    let objects = Objects::new(fixture).await;
    let fixture = &objects.fixture;
    // Between the removal of a row and that of its object.
    fixture.put(&[large(1)]).await;
    fixture.execute("delete from contents").await;
    assert_eq!((objects.paths().len(), objects.listed().await), (1, 1));
    objects.sweep(now()).await;
    assert_eq!((objects.paths().len(), objects.listed().await), (0, 0));
    // Between the removal of an object and that of its entry in the list.
    fixture.put(&[large(2)]).await;
    fixture.execute("delete from contents").await;
    fs::remove_file(objects.paths().remove(0)).unwrap();
    objects.sweep(now()).await;
    assert_eq!(objects.listed().await, 0);
    // Between the write of an object and that of its row: it goes after the grace period.
    fixture.put(&[large(3)]).await;
    fixture.execute("delete from contents").await;
    fixture.execute("update content_objects set is_removable = 0").await;
    objects.sweep(now() + TimeDelta::minutes(30)).await;
    assert_eq!((objects.paths().len(), objects.listed().await), (1, 1));
    objects.sweep(later()).await;
    assert_eq!((objects.paths().len(), objects.listed().await), (0, 0));
}

async fn a_removed_tenant_leaves_no_objects(fixture: Fixture) {
    let objects = Objects::new(fixture).await;
    let fixture = &objects.fixture;
    fixture.put(&[large(1), large(2)]).await;
    let other = tenant("other");
    fixture.store.content_put(&other, &[large(1)]).await.unwrap();
    while fixture.store.tenant_remove(&fixture.tenant, 1, None).await.unwrap() > 0 {}
    assert_eq!(fixture.store.content_total(&fixture.tenant).await.unwrap(), 0);
    objects.sweep(now()).await;
    let paths = objects.paths();
    assert!(
        paths.len() == 1 && paths[0].to_str().unwrap().contains("/other/"),
        "{paths:?}"
    );
    assert_eq!(fixture.count("content_totals").await, 1);
}

async fn writes_and_sweeps_at_once_lose_nothing(fixture: Fixture) {
    let objects = Objects::new(fixture).await;
    let fixture = &objects.fixture;
    let url = format!("file://{}/objects", objects.directory.path().display());
    let second = opened(fixture, &url, Vec::new()).await;
    // Each sweep is due again only after the grace period.
    let after = |rounds: u64| now() + TimeDelta::hours(3 * i64::try_from(rounds + 1).unwrap());
    for round in 0..8 {
        let writes = (0..6).map(|writer| {
            let store = if writer % 2 == 0 { &fixture.store } else { &second };
            let contents: Vec<Content> = (0..3).map(|n| large(round % 2 + (n + writer) % 4)).collect();
            async move {
                // A write that a sweep overtakes fails as a whole.
                let _ = store.content_put(&fixture.tenant, &contents).await;
            }
        });
        let sweeps = async {
            let sweep = fixture.try_sweep(KEEP_ALL, after(round), 10);
            sweep.await.unwrap();
        };
        tokio::join!(join_all(writes), sweeps);
        for seed in 0..6 {
            load(fixture, &large(seed)).await.unwrap();
        }
    }
    // The clock of the sweeps is ahead, so they may have taken the last write for an old one and
    // forgotten the tenant. Another write makes it due.
    put(fixture, &large(9)).await.unwrap();
    objects.sweep(after(8)).await;
    objects.sweep(after(9)).await;
    assert_eq!((objects.paths().len(), objects.listed().await), (0, 0));
    assert_eq!(fixture.count("contents").await, 0);
    assert_eq!(fixture.store.content_total(&fixture.tenant).await.unwrap(), 0);
    second.close().await;
}
