//! Trees from elsewhere: each is sound as a whole, or refused, at a cost that its contents bound.

use crate::directory::StoredEntry;
use crate::{Content, ContentKind, ContentsError, Shapes, Totals};
use values::session::{Hash, hash_content};

use super::hostile::{entries, is_corrupt, put, totals};
use super::*;

/// Stores bytes as they are, and returns the entry of a file with them.
fn stored(contents: &InMemoryContents, bytes: &[u8]) -> StoredEntry<'static> {
    let hash = hash_content(bytes);
    contents.put(Content {
        hash,
        kind: ContentKind::Bytes,
        bytes: Bytes::copy_from_slice(bytes),
    });
    of_size(hash, bytes.len() as u64)
}

fn of_size(hash: Hash, size: u64) -> StoredEntry<'static> {
    StoredEntry::File {
        hash,
        size,
        modified: 0,
        is_executable: false,
    }
}

/// Puts the same entry under several names, level above level. Returns the root and its totals.
fn tower(contents: &InMemoryContents, levels: usize, names: &[&str], file: StoredEntry<'_>) -> (Hash, Totals) {
    let mut below = put(contents, entries(&[("f", file)]));
    let mut sum = totals(1, 0, 1);
    for _ in 0..levels {
        let entry = StoredEntry::Directory {
            hash: below,
            totals: sum,
        };
        below = put(
            contents,
            entries(&names.iter().map(|name| (*name, entry)).collect::<Vec<_>>()),
        );
        let each = sum.plus(totals(0, 1, 0));
        sum = names.iter().fold(Totals::default(), |sum, _| sum.plus(each));
    }
    (below, sum)
}

async fn confirmed(contents: &Arc<InMemoryContents>, root: Hash) -> Result<(), TreeError> {
    let tree = Tree::open(contents.clone(), WorkspaceLimits::default(), root);
    tree.confirm().await
}

#[tokio::test]
async fn a_tree_that_was_saved_is_sound() {
    let (contents, tree) = empty();
    let names: Vec<_> = (0..700).map(|number| format!("many/n{number}: {number}")).collect();
    let tree = change(&tree, &names).await;
    let tree = change(&tree, &["d/e/f*: 1", "d/e/same: 1", "d/e/up -> ../../many", "d/empty/"]).await;
    let large = Bytes::from(Random(7).bytes(3 << 20));
    let tree = with_file(&tree, "large", large).await;
    let tree = tree.save().await.unwrap();
    confirmed(&contents, tree.hash().unwrap()).await.unwrap();
    // It needs all of its contents.
    for content in contents.all() {
        contents.remove(&content.hash);
        let error = confirmed(&contents, tree.hash().unwrap()).await.unwrap_err();
        assert!(
            matches!(&error, TreeError::Contents(ContentsError::Missing { hash }) if *hash == content.hash),
            "{error:?}"
        );
        contents.put(content);
    }
    confirmed(&contents, put(&contents, entries(&[]))).await.unwrap();
}

#[tokio::test]
async fn what_is_no_directory_is_no_tree() {
    let (contents, _) = empty();
    for bytes in [&b"text"[..], b"", b"{}"] {
        let StoredEntry::File { hash, .. } = stored(&contents, bytes) else {
            panic!()
        };
        assert!(is_corrupt(&confirmed(&contents, hash).await.unwrap_err()));
    }
}

#[tokio::test]
async fn entries_are_what_they_state() {
    let (contents, _) = empty();
    let file = stored(&contents, b"x");
    let StoredEntry::File { hash, .. } = file else { panic!() };
    let directory = put(&contents, entries(&[("f", file)]));
    let large: Vec<u8> = Random(3).bytes(2 << 20);
    let whole = stored(&contents, &large);
    let inner = |totals| StoredEntry::Directory {
        hash: directory,
        totals,
    };
    let twice = entries(&[("a", inner(totals(1, 0, 1))), ("b", inner(totals(1, 0, 2)))]);
    let cases = [
        ("a file that is a directory", entries(&[("a", of_size(directory, 1))])),
        (
            "a directory that is a file",
            entries(&[(
                "a",
                StoredEntry::Directory {
                    hash,
                    totals: totals(0, 0, 0),
                },
            )]),
        ),
        ("a size that is too small", entries(&[("a", of_size(hash, 0))])),
        ("a size that is too large", entries(&[("a", of_size(hash, 2))])),
        ("a large file without chunks", entries(&[("a", whole)])),
        ("chunks of a small file", entries(&[("a", of_size(hash, 3 << 20))])),
        ("two sizes of a file", entries(&[("a", file), ("b", of_size(hash, 2))])),
        ("wrong totals", entries(&[("a", inner(totals(0, 0, 0)))])),
        ("two totals of a directory", twice),
        ("a name that is a path", entries(&[("a/b", file)])),
        ("a name that leads up", entries(&[("..", file)])),
    ];
    for (what, root) in cases {
        let error = confirmed(&contents, put(&contents, root)).await.expect_err(what);
        assert!(is_corrupt(&error), "{what}: {error:?}");
    }
    let huge = put(
        &contents,
        entries(&[("a", of_size(hash, u64::MAX)), ("b", of_size(hash, u64::MAX))]),
    );
    let error = confirmed(&contents, huge).await.unwrap_err();
    assert!(matches!(error, TreeError::TooLarge { .. }), "{error:?}");
    let long = put(&contents, entries(&[("a", of_size(hash, 1 << 29))]));
    let error = confirmed(&contents, long).await.unwrap_err();
    assert!(matches!(error, TreeError::FileTooLarge { .. }), "{error:?}");
}

#[tokio::test]
async fn paths_are_measured_from_the_root() {
    let (contents, _) = empty();
    let file = stored(&contents, b"x");
    for (levels, name, expected) in [
        (63, "d", None),
        (64, "d", Some("TooDeep")),
        (200, "d", Some("TooDeep")),
        (60, &*"d".repeat(200), Some("TooLong")),
        (4, &*"d".repeat(255), Some("TooLong")),
        (4, &*"d".repeat(254), None),
    ] {
        let (root, _) = tower(&contents, levels, &[name], file);
        let error = confirmed(&contents, root).await.err().map(|error| match error {
            TreeError::Path(error) => format!("{error:?}"),
            other => panic!("{other:?}"),
        });
        assert_eq!(error.as_deref(), expected, "{levels} levels");
    }
    for (levels, target, is_sound) in [
        (0, "../a", false),
        (2, "../../a", true),
        (2, "../../../a", false),
        (2, "a/../../..", true),
        (2, "a/../../../../b", false),
    ] {
        let link = StoredEntry::Symlink { target };
        let (root, _) = {
            let mut below = put(&contents, entries(&[("l", link)]));
            let mut sum = totals(1, 0, 0);
            for _ in 0..levels {
                let entry = StoredEntry::Directory {
                    hash: below,
                    totals: sum,
                };
                below = put(&contents, entries(&[("d", entry), ("e", file)]));
                sum = sum.plus(totals(1, 1, 1));
            }
            (below, sum)
        };
        let error = confirmed(&contents, root).await.err();
        assert_eq!(error.is_none(), is_sound, "{target} at {levels}: {error:?}");
        let is_unsafe = matches!(error, None | Some(TreeError::UnsafeSymlink { .. }));
        assert!(is_unsafe, "{target} at {levels}: {error:?}");
    }
}

#[tokio::test]
async fn directories_under_many_names_are_read_once() {
    let (contents, _) = empty();
    let names: Vec<_> = (0..20).map(|number| format!("n{number:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let file = stored(&contents, b"x");
    let (root, sum) = tower(&contents, 3, &names, file);
    assert_eq!(sum.files, 8_000);
    contents.take_counts();
    confirmed(&contents, root).await.unwrap();
    assert!(contents.take_counts().loaded < 10);

    let (root, sum) = tower(&contents, 8, &names, file);
    assert!(sum.files > 1 << 34);
    let error = confirmed(&contents, root).await.unwrap_err();
    assert!(matches!(error, TreeError::TooManyFiles { limit: 50_000 }), "{error:?}");
    assert!(contents.take_counts().loaded < 10);
}

#[tokio::test]
async fn several_trees_share_what_is_known() {
    let (contents, tree) = empty();
    let tree = change_and_save(&tree, &["a/b/c: 1", "d/e: 2"]).await;
    let next = change_and_save(&tree, &["d/e: 3"]).await;
    let mut shapes = Shapes::new(&*contents, WorkspaceLimits::CEILINGS);
    contents.take_counts();
    for (tree, loaded) in [(&tree, 4), (&next, 2), (&tree, 0)] {
        shapes.check(tree.hash().unwrap()).await.unwrap();
        assert_eq!(contents.take_counts().loaded, loaded);
    }
}
