//! Verification of files: each directory, file and chunk must be there and match its hash.

use test_support::databases::Engine;
use test_support::workspaces::{Node, below, chunked, directory, entry, environment_of, file, large_directory};
use values::session::{Hash, hash_content};
use workspace::Content;

use super::contents::hash_literal;
use crate::fixtures::Fixture;

on_both_engines!(
    sound_files_have_no_faults,
    lost_contents_are_found,
    changed_contents_are_found,
    a_file_that_differs_from_its_chunks_is_found,
    a_shared_fault_is_reported_once,
    many_faults_are_cut,
    a_row_with_another_tree_is_found,
    trees_that_no_workspace_can_have_are_found,
);

/// A tree with a file in each place where one can be.
struct Files {
    root: Content,
    /// `large.bin` of two chunks.
    large: Content,
    chunks: [Content; 2],
    /// `src/a.txt`.
    nested: Content,
    /// `src`.
    source: Content,
    /// The first part of `many`.
    part: Content,
    all: Vec<Content>,
}

fn files() -> Files {
    let chunks = [file(vec![1; 70_000]), file(vec![2; 90_000])];
    let large = chunked(&chunks);
    let (nested, empty) = (file("nested"), file(""));
    let source = directory(&[("a.txt", entry(&nested)), ("empty", entry(&empty))]);
    let (many, parts) = large_directory(entry(&nested));
    let root = directory(&[
        ("large.bin", Node::File(large.hash, 160_000)),
        ("many", below(&many)),
        ("src", below(&source)),
    ]);
    let all = [&large, &nested, &empty, &source, &many, &root].into_iter();
    let all = all.chain(&chunks).chain(&parts).cloned().collect();
    Files {
        root,
        large,
        chunks,
        nested,
        source,
        part: parts[0].clone(),
        all,
    }
}

impl Fixture {
    /// Publishes a session without parent that has a tree. Verifies it and returns the faults.
    async fn faults_of(&self, tree: Hash) -> Vec<(&'static str, String)> {
        let mut commit = self.commit(None, &["files"]);
        commit.draft.environment = environment_of(tree, "a").into();
        let session_id = self.publish(&commit).await.head.session_id;
        let report = self.store.session_verify(&self.tenant, session_id).await;
        let faults = report.unwrap().unwrap().faults.into_iter();
        let faults = faults.inspect(|fault| assert_eq!(fault.session_id, session_id));
        faults.map(|fault| (fault.part, fault.detail)).collect()
    }

    /// Asserts that the only fault of a tree begins with a path and contains words.
    async fn assert_fault(&self, tree: Hash, path: &str, words: &str) {
        let faults = self.faults_of(tree).await;
        let [(part, detail)] = &faults[..] else {
            panic!("{faults:?}")
        };
        assert_eq!(*part, "workspace");
        let begins = detail.starts_with(&format!("{path} ("));
        assert!(begins && detail.contains(words), "{detail}");
    }

    async fn remove_content(&self, hash: Hash) {
        let which = hash_literal(self, hash);
        let delete = format!("delete from contents where hash = {which}");
        self.database.execute(&delete).await.unwrap();
    }
}

async fn sound_files_have_no_faults(fixture: Fixture) {
    let files = files();
    fixture.put(&files.all).await;
    assert_eq!(fixture.faults_of(files.root.hash).await, []);
    let empty = directory(&[]);
    fixture.put(std::slice::from_ref(&empty)).await;
    assert_eq!(fixture.faults_of(empty.hash).await, []);
}

async fn lost_contents_are_found(fixture: Fixture) {
    let files = files();
    let missing = "the content is missing";
    let chunk = format!("the chunk {}", files.chunks[1].hash);
    for (lost, path, words) in [
        (&files.root, ".", missing),
        (&files.source, "src", missing),
        (&files.part, "many", missing),
        (&files.large, "large.bin", missing),
        (&files.chunks[1], "large.bin", &chunk),
    ] {
        fixture.put(&files.all).await;
        fixture.remove_content(lost.hash).await;
        fixture.assert_fault(files.root.hash, path, words).await;
    }
    // It is at two paths, and reported for one.
    fixture.put(&files.all).await;
    fixture.remove_content(files.nested.hash).await;
    let faults = fixture.faults_of(files.root.hash).await;
    assert!(
        faults.len() == 1 && faults[0].1.contains(&files.nested.hash.to_string()),
        "{faults:?}"
    );
}

async fn changed_contents_are_found(fixture: Fixture) {
    let files = files();
    fixture.database.allow_updates().await;
    let bytes = |hex: &str| match fixture.database.engine {
        Engine::Postgres => format!(r"'\x{hex}'::bytea"),
        Engine::Sqlite => format!("x'{hex}'"),
    };
    for (changed, path, set, words) in [
        (
            &files.nested,
            "src/a.txt",
            format!("encoding = 0, payload = {}", bytes("4e4553544544")),
            "differ from their hash",
        ),
        (
            &files.source,
            "src",
            format!("size = 2, encoding = 0, payload = {}", bytes("0100")),
            "differ from their hash",
        ),
        (&files.source, "src", "kind = 0".to_owned(), "differ from their hash"),
        (
            &files.large,
            "large.bin",
            format!("size = 1, payload = {}", bytes("02")),
            "can't be decoded",
        ),
        (&files.large, "large.bin", "size = 3".to_owned(), "its row states 3"),
        (
            &files.large,
            "large.bin",
            format!("size = 1, payload = {}", bytes("01")),
            "do not have the size",
        ),
        (&files.chunks[0], "large.bin", "kind = 2".to_owned(), "the chunk"),
    ] {
        fixture.put(&files.all).await;
        let which = hash_literal(&fixture, changed.hash);
        let update = format!("update contents set {set} where hash = {which}");
        fixture.execute(&update).await;
        // A file is named by the path at which it was found first.
        let tree = if path == "src/a.txt" {
            directory(&[("src", below(&files.source))])
        } else {
            files.root.clone()
        };
        fixture.put(std::slice::from_ref(&tree)).await;
        fixture.assert_fault(tree.hash, path, words).await;
        fixture.remove_content(changed.hash).await;
    }
}

async fn a_file_that_differs_from_its_chunks_is_found(fixture: Fixture) {
    let files = files();
    let swapped = Content {
        hash: files.large.hash,
        ..chunked(&[files.chunks[1].clone(), files.chunks[0].clone()])
    };
    fixture.put(&[swapped]).await;
    fixture.put(&files.all).await;
    fixture
        .assert_fault(files.root.hash, "large.bin", "differ from the hash of the file")
        .await;
    let wrong_size = directory(&[
        ("a", Node::File(files.nested.hash, 7)),
        ("b", Node::Directory(files.nested.hash, [0; 3])),
    ]);
    fixture.put(std::slice::from_ref(&wrong_size)).await;
    let faults = fixture.faults_of(wrong_size.hash).await;
    let is_of_both = faults
        .iter()
        .all(|(_, detail)| detail.contains("not what its directory states"));
    assert!(faults.len() == 2 && is_of_both, "{faults:?}");
}

async fn a_shared_fault_is_reported_once(fixture: Fixture) {
    let lost = file("lost");
    let shared = directory(&[("lost", entry(&lost))]);
    let first = directory(&[("shared", below(&shared))]);
    let second = directory(&[
        ("again", below(&shared)),
        ("more", Node::Directory(hash_content(b"more"), [0; 3])),
    ]);
    fixture.put(&[shared, first.clone(), second.clone()]).await;
    let mut parent = None;
    let mut sessions = Vec::new();
    for (tree, variable) in [(&first, "a"), (&first, "b"), (&second, "c")] {
        let mut commit = fixture.commit(parent.as_ref(), &["files"]);
        commit.draft.environment = environment_of(tree.hash, variable).into();
        let published = fixture.publish(&commit).await;
        sessions.push(published.head.session_id);
        parent = Some(published);
    }
    let report = fixture.verify(sessions[2]).await;
    let faults: Vec<_> = report
        .faults
        .iter()
        .map(|fault| (fault.session_id, &fault.detail))
        .collect();
    let [(of_first, detail), (of_last, more)] = faults[..] else {
        panic!("{faults:?}")
    };
    assert_eq!((of_first, of_last), (sessions[0], sessions[2]));
    assert!(
        detail.starts_with("shared/lost (") && more.starts_with("more ("),
        "{faults:?}"
    );
}

async fn many_faults_are_cut(fixture: Fixture) {
    let names: Vec<String> = (0..200).map(|number| format!("{number:03}")).collect();
    let lost = names
        .iter()
        .map(|name| (name.as_str(), Node::File(hash_content(name.as_bytes()), 3)));
    let root = directory(&lost.collect::<Vec<_>>());
    fixture.put(std::slice::from_ref(&root)).await;
    assert_eq!(fixture.faults_of(root.hash).await.len(), 100);
}

async fn a_row_with_another_tree_is_found(fixture: Fixture) {
    let files = files();
    fixture.put(&files.all).await;
    fixture.database.allow_updates().await;
    fixture.faults_of(files.root.hash).await;
    let other = hash_literal(&fixture, files.source.hash);
    for tree in ["null", &other] {
        let update = format!("update states set tree = {tree} where kind = 'environment'");
        fixture.execute(&update).await;
        let faults = fixture.faults_of(files.root.hash).await;
        assert!(faults.len() == 1 && faults[0].1.contains("another tree"), "{faults:?}");
    }
}

async fn trees_that_no_workspace_can_have_are_found(fixture: Fixture) {
    let leaf = file("x");
    let inner = directory(&[("f", entry(&leaf))]);
    let lying = directory(&[("d", Node::Directory(inner.hash, [1, 0, 2]))]);
    let mut all = vec![leaf, inner.clone(), lying.clone()];
    let mut deep = inner.clone();
    for _ in 0..64 {
        deep = directory(&[("d", below(&deep))]);
        all.push(deep.clone());
    }
    // A thousand times a thousand names for one directory.
    let (wide, parts) = large_directory(below(&inner));
    let (wider, more) = large_directory(below(&wide));
    let (widest, most) = large_directory(below(&wider));
    all.extend(
        [wide, wider, widest.clone()]
            .into_iter()
            .chain(parts)
            .chain(more)
            .chain(most),
    );
    fixture.put(&all).await;
    for (tree, words) in [
        (lying.hash, "is damaged"),
        (deep.hash, "more than 64 levels"),
        (widest.hash, "more than 1000000 files"),
    ] {
        let faults = fixture.faults_of(tree).await;
        let [(part, detail)] = &faults[..] else {
            panic!("{faults:?}")
        };
        assert!(*part == "workspace" && detail.contains(words), "{detail}");
    }
}
