//! The contents that saving a tree stores.

use std::collections::HashMap;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::{Content, ContentKind, Contents, ContentsError, StoredContent};
use values::session::{Hash, hash_content};
use values::tenant::TenantId;

use super::*;

/// Contents that record what is stored together.
#[derive(Debug, Default)]
struct Recorder {
    inner: InMemoryContents,
    batches: Mutex<Vec<Vec<Content>>>,
}

#[async_trait]
impl Contents for Recorder {
    fn tenant(&self) -> &TenantId {
        self.inner.tenant()
    }

    async fn load(&self, hashes: &[Hash]) -> Result<Vec<Content>, ContentsError> {
        self.inner.load(hashes).await
    }

    async fn store(&self, contents: Vec<Content>) -> Result<(), ContentsError> {
        self.batches.lock().push(contents.clone());
        self.inner.store(contents).await
    }

    async fn renew(&self, hashes: &[Hash]) -> Result<HashMap<Hash, StoredContent>, ContentsError> {
        self.inner.renew(hashes).await
    }
}

#[tokio::test]
async fn saving_stores_children_first_and_once() {
    let (contents, tree) = empty();
    let tree = change(&tree, &["a: 1", "d/b: 1", "d/e/c: 2", "d/e/g/"]).await;
    let saved = tree.save().await.unwrap();
    let counts = contents.take_counts();
    // Two files, and the directories `d/e/g`, `d/e`, `d` and the root.
    assert_eq!((counts.stores, counts.stored), (1, 6));
    assert_eq!((saved.unsaved_bytes(), tree.hash()), (0, None));
    assert_eq!(shown(&reopened(&contents, &saved)).await, shown(&tree).await);
    contents.take_counts();
    assert_eq!(saved.save().await.unwrap().hash(), saved.hash());
    assert_eq!(contents.take_counts().stored, 0, "nothing has changed");
    assert_eq!(tree.save().await.unwrap().hash(), saved.hash());
    let changed = change(&reopened(&contents, &saved), &["d/b: 3"]).await;
    contents.take_counts();
    changed.save().await.unwrap();
    assert_eq!(contents.take_counts().stored, 3, "the file, `d` and the root");
    let emptied = change_and_save(&saved, &["!a", "!d"]).await;
    assert_eq!((emptied.hash(), contents.take_counts().stored), (None, 0));
    assert!(empty().1.save().await.unwrap().hash().is_none());
}

#[tokio::test]
async fn what_refers_to_a_content_is_stored_after_it() {
    let contents = Arc::new(Recorder::default());
    let tree = Tree::empty(contents.clone(), WorkspaceLimits::default());
    let files: Vec<_> = (0..600).map(|file| format!("d{}/f{file}: {file}", file % 7)).collect();
    let tree = change(&tree, &files).await;
    let large = Bytes::from(Random(4).bytes(10 << 20));
    let tree = with_file(&tree, "large", large.clone()).await;
    let tree = with_file(&tree, "other", large.slice(1..)).await;
    tree.save().await.unwrap();
    let batches = std::mem::take(&mut *contents.batches.lock());
    assert!(batches.len() > 3);
    let mut stored = Vec::new();
    for batch in batches {
        let bytes: usize = batch.iter().map(|content| content.bytes.len()).sum();
        assert!(batch.len() <= 256 && bytes <= 8 << 20, "{}, {bytes}", batch.len());
        stored.extend(batch);
    }
    let position = |hash: &[u8; 32]| stored.iter().position(|content| content.hash.as_bytes() == hash);
    for (index, content) in stored.iter().enumerate() {
        if content.kind == ContentKind::Bytes {
            continue;
        }
        for window in content.bytes.windows(32) {
            let at = position(window.try_into().unwrap());
            assert!(at.is_none_or(|at| at < index), "{at:?} is referred to by {index}");
        }
    }
}

#[tokio::test]
async fn the_encoding_never_changes() {
    let (contents, tree) = empty();
    let tree = change_and_save(&tree, &["a: 1", "d/b*: 2", "d/l -> b", "e/"]).await;
    let hash = tree.hash().unwrap().to_string();
    assert_eq!(
        hash, "be9af7cfc5ccd2573d77e889336827199968a90dec0e5e91643dfc0aa16d3540",
        "stored trees are found by it"
    );
    let many: Vec<_> = (0..1_000).map(|file| format!("f{file}: {file}")).collect();
    let tree = change_and_save(&tree, &many).await;
    let hash = tree.hash().unwrap().to_string();
    assert_eq!(
        hash, "ee9c458b79077fe18c4b10d0e8d2c8268b3cde1c1ce2da0ff94af4bda9c4a6b1",
        "stored trees are found by it"
    );
    let large = Bytes::from(Random(7).bytes(3 << 20));
    with_file(&tree, "large", large.clone()).await.save().await.unwrap();
    let list = contents
        .all()
        .into_iter()
        .find(|content| content.hash == hash_content(&large))
        .unwrap();
    assert_eq!(
        (list.kind, hash_content(&list.bytes).to_string().as_str()),
        (
            ContentKind::Chunks,
            "91089491e0ea6a1ca844365d06ae5aee09a0238d724489438e99c3f0757b39c1"
        )
    );
}

#[tokio::test]
async fn a_large_file_is_stored_in_chunks() {
    let (contents, tree) = empty();
    let mut bytes = Random(1).bytes(5 << 20);
    let tree = with_file(&tree, "f", Bytes::from(bytes.clone())).await;
    let tree = reopened(&contents, &tree.save().await.unwrap());
    assert!(contents.take_counts().stored > 5);
    let entry = tree.entry(&path("f")).await.unwrap().unwrap();
    let Entry::File { hash, .. } = entry else {
        panic!("{entry:?}")
    };
    assert_eq!(hash, hash_content(&bytes), "the hash is that of the whole file");
    assert_eq!(tree.read(&path("f")).await.unwrap(), bytes);
    bytes.splice(2 << 20..2 << 20, *b"some more");
    let tree = with_file(&tree, "f", Bytes::from(bytes.clone())).await;
    contents.take_counts();
    let before = contents.all().len();
    let tree = reopened(&contents, &tree.save().await.unwrap());
    let new = contents.all().len() - before;
    assert!((3..=6).contains(&new), "{new}: a chunk or some, the list and the root");
    assert_eq!(tree.read(&path("f")).await.unwrap(), bytes);
    for length in [1 << 20, (1 << 20) + 1] {
        let bytes = Bytes::from(vec![0; length]);
        let saved = with_file(&tree, "zeros", bytes.clone()).await.save().await.unwrap();
        assert_eq!(
            reopened(&contents, &saved).read(&path("zeros")).await.unwrap(),
            bytes,
            "{length}"
        );
    }
}

#[tokio::test]
async fn a_damaged_chunk_is_found() {
    let (contents, tree) = empty();
    let bytes = Bytes::from(Random(2).bytes(3 << 20));
    let hash = hash_content(&bytes);
    let tree = with_file(&tree, "f", bytes).await.save().await.unwrap();
    let list = contents.all().into_iter().find(|content| content.hash == hash).unwrap();
    let mut swapped = list.bytes.to_vec();
    // Each chunk of the list is stored and has its size. Their order is wrong.
    let (first, second) = (swapped[1..36].to_vec(), swapped[36..71].to_vec());
    swapped[1..36].copy_from_slice(&second);
    swapped[36..71].copy_from_slice(&first);
    for bytes in [swapped, list.bytes[..list.bytes.len() - 35].to_vec(), vec![1], vec![]] {
        contents.put(Content {
            bytes: Bytes::from(bytes),
            ..list.clone()
        });
        let error = reopened(&contents, &tree).read(&path("f")).await.unwrap_err();
        assert!(
            matches!(error, TreeError::Contents(ContentsError::Corrupt { hash: found }) if found == hash),
            "{error:?}"
        );
    }
}
