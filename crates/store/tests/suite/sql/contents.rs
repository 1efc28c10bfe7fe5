//! Contents of workspaces: what is stored is loaded, each tenant has its own, and a write renews
//! what is stored already.

use std::error::Error as _;

use futures_util::future::join_all;
use store::contents::MAX_CONTENT_BYTES;
use store::{CommitError, StoreError};
use test_support::databases::Engine;
use test_support::drafts::tenant;
use test_support::workspaces::{environment_of, file};
use values::session::{Hash, hash_content};
use workspace::{Content, ContentKind};

use super::queue::fixtures::journal;
use crate::fixtures::Fixture;
use crate::sql::queue::fixtures::queued_run;

on_both_engines!(
    contents_are_loaded_in_the_order_asked,
    each_tenant_has_its_own_contents,
    a_batch_of_any_size_is_stored,
    a_content_that_is_too_large_is_refused,
    a_stored_content_is_renewed_and_never_changed,
    a_look_up_renews_what_is_stored,
    a_damaged_content_is_an_error,
    writes_of_the_same_contents_at_once_succeed,
    the_tree_of_an_environment_stands_in_its_row,
    the_tree_of_a_journal_entry_comes_back,
    a_commit_needs_the_session_whose_environment_it_uses,
    a_repeated_commit_does_not_need_that_session_any_more,
);

/// Bytes that can't be compressed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut noise = vec![0; length];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut noise);
    noise
}

/// Writes a hash as the engine does.
pub(crate) fn hash_literal(fixture: &Fixture, hash: Hash) -> String {
    match fixture.database.engine {
        Engine::Postgres => format!(r"'\x{hash}'::bytea"),
        Engine::Sqlite => format!("x'{hash}'"),
    }
}

/// An SQL expression of the time so many minutes ago.
pub(crate) fn minutes_ago(fixture: &Fixture, minutes: i64) -> String {
    match fixture.database.engine {
        Engine::Postgres => format!("now() - interval '{minutes} minutes'"),
        Engine::Sqlite => format!("unixepoch() * 1000000 - {}", minutes * 60_000_000),
    }
}

impl Fixture {
    pub(crate) async fn put(&self, contents: &[Content]) {
        self.store.content_put(&self.tenant, contents).await.unwrap();
    }

    /// Makes contents look as if they were written so many minutes ago.
    pub(crate) async fn age_contents(&self, minutes: i64) {
        let time = minutes_ago(self, minutes);
        for update in [
            format!("update contents set written_at = {time}"),
            format!("update content_sweeps set changed_at = {time}, swept_at = {time}"),
        ] {
            self.database.execute(&update).await.unwrap();
        }
    }

    /// Returns how many contents were written in the last minutes.
    async fn fresh_contents(&self) -> i64 {
        let since = minutes_ago(self, 5);
        self.count(&format!("contents where written_at > {since}")).await
    }

    /// Returns how many tenants had a change of contents in the last minutes.
    async fn fresh_changes(&self) -> i64 {
        let since = minutes_ago(self, 5);
        self.count(&format!("content_sweeps where changed_at > {since}")).await
    }
}

async fn contents_are_loaded_in_the_order_asked(fixture: Fixture) {
    let text = file("text ".repeat(5_000));
    let empty = file("");
    let random = file(noise(1, 100_000));
    let chunks = Content {
        kind: ContentKind::Chunks,
        ..file("a list")
    };
    let directory = Content {
        kind: ContentKind::Directory,
        ..file("names")
    };
    let all = [text, empty, random, chunks, directory];
    fixture.put(&all).await;
    let absent = hash_content(b"absent");
    let mut wanted: Vec<Hash> = all.iter().map(|content| content.hash).collect();
    wanted.reverse();
    wanted.insert(2, absent);
    wanted.push(wanted[0]);
    let loaded = fixture.store.content_load(&fixture.tenant, &wanted).await.unwrap();
    let [text, empty, random, chunks, directory] = all.map(Some);
    assert_eq!(
        loaded,
        [directory.clone(), chunks, None, random, empty, text, directory]
    );
    let missing = fixture.store.content_missing(&fixture.tenant, &wanted).await.unwrap();
    assert_eq!(missing, [absent]);
    let twice = [absent, absent];
    let missing = fixture.store.content_missing(&fixture.tenant, &twice).await.unwrap();
    assert_eq!(missing, [absent]);
    let total = fixture.store.content_total(&fixture.tenant).await.unwrap();
    assert_eq!(total, 25_000 + 100_000 + 6 + 5);
    let stored = fixture
        .database
        .number("select sum(length(payload)) from contents")
        .await;
    assert!(stored < 101_000, "text is compressed: {stored}");
    assert_eq!(fixture.store.content_load(&fixture.tenant, &[]).await.unwrap(), []);
    assert_eq!(fixture.store.content_missing(&fixture.tenant, &[]).await.unwrap(), []);
    fixture.put(&[]).await;
}

async fn each_tenant_has_its_own_contents(fixture: Fixture) {
    let (ours, theirs) = (file("ours"), file("theirs"));
    let other = tenant("other");
    fixture.put(std::slice::from_ref(&ours)).await;
    fixture
        .store
        .content_put(&other, std::slice::from_ref(&theirs))
        .await
        .unwrap();
    let hashes = [ours.hash, theirs.hash];
    let of = async |tenant| fixture.store.content_load(tenant, &hashes).await.unwrap();
    assert_eq!(of(&fixture.tenant).await, [Some(ours), None]);
    assert_eq!(of(&other).await, [None, Some(theirs)]);
    let missing = fixture.store.content_missing(&other, &hashes).await.unwrap();
    assert_eq!(missing, [hashes[0]]);
    assert_eq!(fixture.store.content_total(&other).await.unwrap(), 6);
    assert_eq!(fixture.store.content_total(&tenant("third")).await.unwrap(), 0);
}

async fn a_batch_of_any_size_is_stored(fixture: Fixture) {
    let mut all: Vec<Content> = (0_u64..700).map(|n| file(n.to_le_bytes().to_vec())).collect();
    all.extend((0..5).map(|seed| file(noise(seed, 3 << 20))));
    all.push(file(noise(5, MAX_CONTENT_BYTES)));
    // Duplicates are stored once.
    all.extend_from_within(..300);
    fixture.put(&all).await;
    assert_eq!(fixture.count("contents").await, 706);
    let hashes: Vec<Hash> = all.iter().map(|content| content.hash).collect();
    let loaded = fixture.store.content_load(&fixture.tenant, &hashes).await.unwrap();
    assert!(loaded.into_iter().flatten().eq(all));
    assert_eq!(
        fixture.store.content_missing(&fixture.tenant, &hashes).await.unwrap(),
        []
    );
}

async fn a_content_that_is_too_large_is_refused(fixture: Fixture) {
    let large = file(vec![0; MAX_CONTENT_BYTES + 1]);
    let error = fixture
        .store
        .content_put(&fixture.tenant, &[file("small"), large])
        .await;
    let error = error.unwrap_err();
    assert!(matches!(error, StoreError::Failed { .. }), "{error:?}");
    assert_eq!(fixture.count("contents").await, 0);
}

async fn a_stored_content_is_renewed_and_never_changed(fixture: Fixture) {
    let (old, new) = (file("old"), file("new"));
    fixture.put(std::slice::from_ref(&old)).await;
    assert_eq!((fixture.fresh_contents().await, fixture.fresh_changes().await), (1, 1));
    fixture.age_contents(60).await;
    assert_eq!((fixture.fresh_contents().await, fixture.fresh_changes().await), (0, 0));
    fixture.put(&[old.clone(), new]).await;
    assert_eq!((fixture.fresh_contents().await, fixture.fresh_changes().await), (2, 1));
    assert_eq!(fixture.count("content_sweeps").await, 1);
    // It is not written at all if that was done a few minutes ago.
    fixture.age_contents(7).await;
    fixture.put(std::slice::from_ref(&old)).await;
    assert_eq!((fixture.fresh_contents().await, fixture.fresh_changes().await), (0, 0));
    for column in ["payload = hash", "size = 1", "kind = 2", "tenant = 'other'"] {
        let update = format!("update contents set {column}");
        assert!(fixture.database.execute(&update).await.is_err(), "{column}");
    }
}

async fn a_look_up_renews_what_is_stored(fixture: Fixture) {
    let (wanted, other) = (file("wanted"), file("other"));
    fixture.put(&[wanted.clone(), other]).await;
    fixture.age_contents(60).await;
    let loaded = fixture.store.content_load(&fixture.tenant, &[wanted.hash]).await;
    assert!(loaded.unwrap()[0].is_some());
    assert_eq!(fixture.fresh_contents().await, 0, "a read renews nothing");
    let absent = hash_content(b"absent");
    let missing = async |hashes: &[Hash]| fixture.store.content_missing(&fixture.tenant, hashes).await.unwrap();
    assert_eq!(missing(&[absent]).await, [absent]);
    assert_eq!((fixture.fresh_contents().await, fixture.fresh_changes().await), (0, 0));
    assert_eq!(missing(&[absent, wanted.hash]).await, [absent]);
    assert_eq!((fixture.fresh_contents().await, fixture.fresh_changes().await), (1, 1));
}

async fn a_damaged_content_is_an_error(fixture: Fixture) {
    let (good, bad) = (file("good"), file("bad ".repeat(1_000)));
    fixture.put(&[good.clone(), bad.clone()]).await;
    fixture.database.allow_updates().await;
    let bytes = |hex: &str| match fixture.database.engine {
        Engine::Postgres => format!(r"'\x{hex}'::bytea"),
        Engine::Sqlite => format!("x'{hex}'"),
    };
    let damages = [
        (format!("payload = {}", bytes("28b52ffd")), "payload"),
        // A frame that states 2^27 bytes.
        (format!("payload = {}", bytes("28b52ffda000000008010000")), "payload"),
        ("size = 3999".to_owned(), "size"),
        ("kind = 9".to_owned(), "kind"),
        ("encoding = 9".to_owned(), "encoding"),
        ("schema_version = 2".to_owned(), "schema_version"),
    ];
    let which = hash_literal(&fixture, bad.hash);
    for (damage, column) in damages {
        fixture
            .execute("create table if not exists spare as select * from contents")
            .await;
        let update = format!("update contents set {damage} where hash = {which}");
        fixture.execute(&update).await;
        let error = fixture
            .store
            .content_load(&fixture.tenant, &[good.hash, bad.hash])
            .await
            .unwrap_err();
        let StoreError::Corrupt {
            table,
            column: found,
            id,
            ..
        } = &error
        else {
            panic!("{error:?}")
        };
        assert_eq!(
            (*table, *found, id),
            ("contents", column, &bad.hash.to_string()),
            "{damage}"
        );
        assert!(error.source().is_some());
        let sound = fixture.store.content_load(&fixture.tenant, &[good.hash]).await.unwrap();
        assert_eq!(sound, [Some(good.clone())]);
        let restore = "delete from contents; insert into contents select * from spare";
        fixture.execute(restore).await;
    }
}

async fn writes_of_the_same_contents_at_once_succeed(fixture: Fixture) {
    let contents: Vec<Content> = (0_u64..40).map(|n| file(n.to_le_bytes().to_vec())).collect();
    let hashes: Vec<Hash> = contents.iter().map(|content| content.hash).collect();
    for _ in 0..5 {
        let writes = (0..8).map(|offset| {
            let mut contents = contents.clone();
            contents.rotate_left(offset * 5);
            let (fixture, hashes) = (&fixture, &hashes);
            async move {
                if offset % 2 == 0 {
                    fixture.put(&contents).await;
                } else {
                    let missing = fixture.store.content_missing(&fixture.tenant, hashes).await;
                    missing.unwrap();
                }
            }
        });
        join_all(writes).await;
        assert_eq!(fixture.count("contents").await, 40);
        fixture.age_contents(60).await;
    }
}

async fn the_tree_of_an_environment_stands_in_its_row(fixture: Fixture) {
    let tree = hash_content(b"tree");
    let root = fixture.root(&["no files"]).await;
    let mut commit = fixture.commit(Some(&root), &["files"]);
    commit.draft.environment = environment_of(tree, "a").into();
    let child = fixture.publish(&commit).await;
    assert_eq!(fixture.load(child.head.session_id).await.environment.tree(), Some(tree));
    let same = fixture.child(&child, &["more"]).await;
    assert_eq!(same.head.environment_hash, child.head.environment_hash);
    let [of_child, of_root] =
        [child.head.environment_hash, root.head.environment_hash].map(|hash| hash_literal(&fixture, hash));
    let tree = hash_literal(&fixture, tree);
    let with_tree = format!("states where hash = {of_child} and tree = {tree} and kind = 'environment'");
    assert_eq!(fixture.count(&with_tree).await, 1);
    let without = format!("states where hash = {of_root} and tree is null");
    assert_eq!(fixture.count(&without).await, 1);
    assert_eq!(fixture.count("states where kind = 'environment'").await, 2);
}

async fn the_tree_of_a_journal_entry_comes_back(fixture: Fixture) {
    fixture.store.run_accept(&queued_run(&fixture.tenant)).await.unwrap();
    let lease = fixture.lease_one().await.lease;
    let mut records = journal(1, 4);
    let (without, with) = records.split_at_mut(2);
    with[0].tree = Some(hash_content(b"tree"));
    for batch in [without, with] {
        assert!(fixture.store.progress_append(&lease, batch, &[]).await.unwrap());
    }
    let read = fixture.store.journal_read(&fixture.tenant, lease.run_id).await.unwrap();
    assert_eq!(read, records);
    assert_eq!(fixture.count("run_journal where tree is not null").await, 1);
}

async fn a_commit_needs_the_session_whose_environment_it_uses(fixture: Fixture) {
    let (talk, files) = (fixture.root(&["talk"]).await, fixture.root(&["files"]).await);
    let mut commit = fixture.commit(Some(&talk), &["both"]);
    commit.environment_from = Some(files.head.session_id);
    fixture.publish(&commit).await;
    fixture.remove(files.head.session_id).await;
    let mut commit = fixture.commit(Some(&talk), &["too late"]);
    commit.environment_from = Some(files.head.session_id);
    let error = fixture.store.session_commit(&commit).await.unwrap_err();
    assert!(matches!(error, CommitError::MissingEnvironment), "{error:?}");
    let found = fixture.head(commit.draft.session_id).await;
    assert_eq!(found, None);
    // Another tenant's session is none.
    commit.tenant = tenant("other");
    commit.draft.parent = None;
    commit.environment_from = Some(talk.head.session_id);
    let error = fixture.store.session_commit(&commit).await.unwrap_err();
    assert!(matches!(error, CommitError::MissingEnvironment), "{error:?}");
}

async fn a_repeated_commit_does_not_need_that_session_any_more(fixture: Fixture) {
    let files = fixture.root(&["files"]).await;
    let mut commit = fixture.commit(None, &["talk"]);
    commit.environment_from = Some(files.head.session_id);
    let first = fixture.publish(&commit).await;
    fixture.remove(files.head.session_id).await;
    assert_eq!(fixture.publish(&commit).await, first);
}
