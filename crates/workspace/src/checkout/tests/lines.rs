//! The directory of a run: the directory of its own line of sessions, or a new one.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn no_directory_is_made_from_that_of_another_line_or_tenant() {
    let (_root, checkouts) = opened(4);
    let ours = tree_of(&[("a", "1")]).await;
    let contents = Arc::new(InMemoryContents::new("other".parse().unwrap()));
    let theirs = Tree::empty(contents, WorkspaceLimits::default());
    let theirs = theirs.with_file(&path("a"), "1".into(), false).await.unwrap();
    let theirs = theirs.save().await.unwrap();
    assert_eq!(theirs.hash(), ours.hash());
    let checkout = checkouts.take(LINE, &ours).await.unwrap();
    let files = checkout.directory.files();
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let first = inode(&files.join("a"));
    drop(checkout);
    until(|| checkouts.shelf.lock().retained.len() == 1).await;
    for (line, tree) in [("other", &ours), (LINE, &theirs)] {
        let other = checkouts.take(line, tree).await.unwrap();
        assert_ne!(other.directory.files(), files);
        assert_ne!(inode(&other.directory.files().join("a")), first);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_files_than_a_workspace_may_have_are_not_written() {
    let (_root, checkouts) = opened(4);
    let contents = Arc::new(InMemoryContents::new("tenant".parse().unwrap()));
    let tree = Tree::empty(Arc::<InMemoryContents>::clone(&contents), WorkspaceLimits::default());
    let tree = tree.with_directory(&path("0/leaf")).await.unwrap();
    // Each level has the one below it eight times: few contents, and many directories.
    let mut tree = tree.save().await.unwrap();
    for level in 1..5 {
        let below = tree.entry(&path(&(level - 1).to_string())).await.unwrap().unwrap();
        let mut next = tree.emptied();
        for copy in 0..8 {
            let name = path(&format!("{level}/{copy}"));
            next = next.with_directory(&name).await.unwrap();
            next = next.with_entry(&name, below.clone()).await.unwrap();
        }
        tree = next.save().await.unwrap();
    }
    let limits = WorkspaceLimits {
        files: 1_000,
        ..WorkspaceLimits::default()
    };
    let tree = Tree::open(contents, limits, tree.hash().unwrap());
    let error = checkouts.take(LINE, &tree).await.unwrap_err();
    assert!(error.exceeds_limits(), "{error}");
    let is_written = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().path().join("workspace/4").exists();
    assert!(!fs::read_dir(checkouts.folder()).unwrap().any(is_written));
}
