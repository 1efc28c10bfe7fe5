//! Stored contents that are damaged or hostile: they are errors, and cost no more than their bytes.

use proptest::prelude::*;

use crate::directory::{EntriesEncoder, Listing, StoredEntry, StoredPart, decode, encode_parts};
use crate::{Content, ContentKind, ContentsError, Totals};
use values::session::{Hash, hash_content, hash_directory};

use super::*;

pub(super) fn put(contents: &InMemoryContents, encoded: Vec<u8>) -> Hash {
    let hash = hash_directory(&encoded);
    contents.put(Content {
        hash,
        kind: ContentKind::Directory,
        bytes: Bytes::from(encoded),
    });
    hash
}

pub(super) fn entries(entries: &[(&str, StoredEntry<'_>)]) -> Vec<u8> {
    let mut encoder = EntriesEncoder::new();
    for (name, entry) in entries {
        encoder.push(name, *entry);
    }
    encoder.finish()
}

fn file(size: u64) -> StoredEntry<'static> {
    StoredEntry::File {
        hash: hash_content(b""),
        size,
        is_executable: false,
        modified: 0,
    }
}

pub(super) fn totals(files: u64, directories: u64, bytes: u64) -> Totals {
    Totals {
        files,
        directories,
        bytes,
    }
}

/// Reads all of a tree with the encoded root. Returns the error.
async fn read_all(contents: &Arc<InMemoryContents>, root: Vec<u8>) -> Option<TreeError> {
    let hash = put(contents, root);
    let tree = Tree::open(contents.clone(), WorkspaceLimits::default(), hash);
    tree.walk(None).await.err()
}

pub(super) fn is_corrupt(error: &TreeError) -> bool {
    matches!(error, TreeError::Contents(ContentsError::Corrupt { .. }))
}

#[tokio::test]
async fn a_directory_has_one_encoding_only() {
    let (contents, _) = empty();
    let directory = |hash: Hash, totals: Totals| StoredEntry::Directory { hash, totals };
    let link = |target| StoredEntry::Symlink { target };
    let child = put(&contents, entries(&[("f", file(7))]));
    let good = entries(&[("a", directory(child, totals(1, 0, 7))), ("b", link("a/f"))]);
    assert!(read_all(&contents, good.clone()).await.is_none());
    let names: Vec<_> = (0..513).map(|number| format!("n{number:04}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), file(0))).collect();
    let mut newer = good.clone();
    newer[0] = 2;
    let bad = [
        ("nothing", vec![]),
        ("another version", newer),
        ("another form", vec![1, 2]),
        ("wrong order", entries(&[("b", file(0)), ("a", file(0))])),
        ("a name twice", entries(&[("a", file(0)), ("a", file(0))])),
        ("an empty name", entries(&[("", file(0))])),
        ("a name that is a path", entries(&[("a/b", file(0))])),
        ("a parent", entries(&[("..", file(0))])),
        ("a long name", entries(&[(&"x".repeat(256), file(0))])),
        ("an absolute symlink", entries(&[("a", link("/etc"))])),
        ("an empty symlink", entries(&[("a", link(""))])),
        ("wrong totals", entries(&[("a", directory(child, totals(1, 0, 8)))])),
        (
            "another directory in the totals",
            entries(&[("a", directory(child, totals(1, 1, 7)))]),
        ),
        ("no split", entries(&many[..300])),
        ("too many entries", entries(&many)),
        ("no parts", vec![1, 1]),
        ("cut off", good[..good.len() - 1].to_vec()),
        ("more bytes", [&good[..], &[0]].concat()),
    ];
    for (what, encoded) in bad {
        let error = read_all(&contents, encoded).await.unwrap_or_else(|| panic!("{what}"));
        assert!(is_corrupt(&error), "{what}: {error:?}");
    }
    let outside = entries(&[("b", link("../a"))]);
    let error = read_all(&contents, outside).await.unwrap();
    assert!(matches!(error, TreeError::UnsafeSymlink { .. }), "{error}");
}

#[tokio::test]
async fn a_part_must_be_what_its_list_states() {
    let (contents, tree) = empty();
    let names: Vec<_> = (0..600).map(|number| format!("n{number:04}: {number}")).collect();
    let tree = change_and_save(&tree, &names).await;
    let root = contents
        .all()
        .into_iter()
        .find(|content| Some(content.hash) == tree.hash())
        .unwrap();
    let Listing::Parts(parts) = decode(&root.bytes).unwrap() else {
        panic!()
    };
    assert!(parts.len() > 2);
    assert!(read_all(&contents, encode_parts(parts.iter().copied())).await.is_none());
    let change_part = |index: usize, change: &dyn Fn(&mut StoredPart<'_>)| {
        let mut parts = parts.clone();
        change(&mut parts[index]);
        encode_parts(parts.into_iter())
    };
    let mut joined = EntriesEncoder::new();
    let mut count = 0;
    for part in &parts[..2] {
        let bytes = contents
            .all()
            .into_iter()
            .find(|content| content.hash == part.hash)
            .unwrap()
            .bytes;
        let Listing::Entries(entries) = decode(&bytes).unwrap() else {
            panic!()
        };
        count += entries.len();
        for (name, entry) in entries {
            joined.push(name, entry);
        }
    }
    let joined = put(&contents, joined.finish());
    let mut joined_parts = parts.clone();
    joined_parts[1] = StoredPart {
        first: parts[0].first,
        count,
        hash: joined,
        totals: parts[0].totals.plus(parts[1].totals),
    };
    let bad = [
        ("another count", change_part(1, &|part| part.count += 1)),
        ("no count", change_part(1, &|part| part.count = 0)),
        ("a large count", change_part(1, &|part| part.count = 513)),
        ("another name", change_part(1, &|part| part.first = "n0000a")),
        ("other totals", change_part(1, &|part| part.totals.bytes += 1)),
        ("the wrong part", change_part(1, &|part| part.hash = parts[0].hash)),
        ("a list as a part", change_part(1, &|part| part.hash = root.hash)),
        ("a missing cut", encode_parts(joined_parts[1..].iter().copied())),
        ("one part", encode_parts(parts[..1].iter().copied())),
    ];
    for (what, encoded) in bad {
        let error = read_all(&contents, encoded).await.unwrap_or_else(|| panic!("{what}"));
        assert!(is_corrupt(&error), "{what}: {error:?}");
    }
}

#[tokio::test]
async fn a_directory_that_unfolds_into_billions_is_not_walked() {
    let (contents, _) = empty();
    let mut below = put(&contents, entries(&[]));
    let mut sum = Totals::default();
    for _ in 0..20 {
        let one = StoredEntry::Directory {
            hash: below,
            totals: sum,
        };
        let names: Vec<_> = (0..200).map(|number| format!("n{number:03}")).collect();
        below = put(
            &contents,
            entries(&names.iter().map(|name| (name.as_str(), one)).collect::<Vec<_>>()),
        );
        let each = sum.plus(totals(0, 1, 0));
        sum = (0..200).fold(Totals::default(), |sum, _| sum.plus(each));
    }
    let tree = Tree::open(contents.clone(), WorkspaceLimits::default(), below);
    let error = tree.walk(None).await.unwrap_err();
    assert!(matches!(error, TreeError::TooManyFiles { .. }), "{error}");
    let diff = Tree::empty(contents.clone(), WorkspaceLimits::default())
        .diff(&tree, 10)
        .await;
    assert!(contents.take_counts().loaded < 50_000, "{diff:?}");
}

#[tokio::test]
async fn a_tree_that_is_too_deep_is_not_walked() {
    let (contents, _) = empty();
    let mut below = put(&contents, entries(&[]));
    for level in 0..70 {
        let totals = totals(0, level, 0);
        below = put(
            &contents,
            entries(&[("n", StoredEntry::Directory { hash: below, totals })]),
        );
    }
    let tree = Tree::open(contents.clone(), WorkspaceLimits::default(), below);
    assert!(matches!(tree.walk(None).await, Err(TreeError::Path(_))));
    let none = Tree::empty(contents, WorkspaceLimits::default());
    assert!(matches!(none.diff(&tree, 10).await, Err(TreeError::Path(_))));
    let merged = crate::merge(&none, &change(&none, &["n/a: 1"]).await, &tree).await;
    drop(merged);
}

#[tokio::test]
async fn a_content_that_is_missing_or_another_one_is_found() {
    let (contents, tree) = empty();
    let tree = change_and_save(&tree, &["d/f: text"]).await;
    let all = contents.all();
    for content in &all {
        let read = async || reopened(&contents, &tree).read(&path("d/f")).await.unwrap_err();
        let same = |found: &Hash| *found == content.hash;
        let kind = match content.kind {
            ContentKind::Bytes => ContentKind::Directory,
            ContentKind::Chunks | ContentKind::Directory => ContentKind::Bytes,
        };
        let (hash, bytes) = (content.hash, content.bytes.clone());
        contents.put(Content { hash, kind, bytes });
        assert!(matches!(read().await, TreeError::Contents(ContentsError::Corrupt { hash }) if same(&hash)));
        let mut bytes = content.bytes.to_vec();
        bytes[0] ^= 1;
        contents.put(Content {
            bytes: Bytes::from(bytes),
            ..content.clone()
        });
        assert!(matches!(read().await, TreeError::Contents(ContentsError::Corrupt { hash }) if same(&hash)));
        contents.remove(&content.hash);
        assert!(matches!(read().await, TreeError::Contents(ContentsError::Missing { hash }) if same(&hash)));
        contents.put(content.clone());
    }
    // The size of a file is checked as well.
    let wrong = entries(&[("f", file(5))]);
    contents.put(Content {
        hash: hash_content(b""),
        kind: ContentKind::Bytes,
        bytes: Bytes::new(),
    });
    let tree = Tree::open(contents.clone(), WorkspaceLimits::default(), put(&contents, wrong));
    assert!(is_corrupt(&tree.read(&path("f")).await.unwrap_err()));
}

/// Encoded directories of all forms, to be mutated.
fn samples() -> Vec<Vec<u8>> {
    block_on(async {
        let (contents, tree) = empty();
        let names: Vec<_> = (0..300).map(|number| format!("n{number}: {number}")).collect();
        let tree = change(&tree, &names).await;
        change_and_save(&tree, &["d/e*: 1", "d/g/", "l -> d"]).await;
        let directories = contents
            .all()
            .into_iter()
            .filter(|content| content.kind == ContentKind::Directory);
        directories.map(|content| content.bytes.to_vec()).collect()
    })
}

/// Decodes bytes. A decoded value encodes to exactly these bytes.
fn check(bytes: &[u8]) {
    let encoded = match decode(bytes) {
        Err(_) => return,
        Ok(Listing::Entries(found)) => entries(&found),
        Ok(Listing::Parts(parts)) => encode_parts(parts.into_iter()),
    };
    assert_eq!(encoded, bytes);
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
        let form = u8::from(bytes.len() % 2 == 1);
        bytes.splice(..bytes.len().min(2), [1, form]);
        check(&bytes);
    }
}

#[test]
fn mutated_directories_are_decoded_or_refused() {
    let (samples, mut random) = (samples(), Random(5));
    for _ in 0..20_000 {
        let mut bytes = samples[random.below(samples.len())].clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.byte(),
                1 => bytes[at] ^= 1 << random.below(8),
                2 => bytes.truncate(at.max(1)),
                _ => drop(bytes.splice(at..at, random.bytes(2))),
            }
        }
        check(&bytes);
    }
}
