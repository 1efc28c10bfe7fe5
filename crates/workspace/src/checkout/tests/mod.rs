//! Directories against trees: what commands do to the files shows in the next tree.

mod like_new;
mod lines;
mod mapped;
mod rest;
mod swaps;
mod unreadable;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{Entry, FilePath, InMemoryContents, Tree, WorkspaceLimits};
use values::path_patterns::PathPatterns;

/// The line of the sessions of most tests.
const LINE: &str = "line";

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

fn empty() -> Tree {
    let contents = Arc::new(InMemoryContents::new("tenant".parse().unwrap()));
    Tree::empty(contents, WorkspaceLimits::default())
}

/// Opens directories in an empty folder, of which so many are retained.
fn opened(retained: usize) -> (tempfile::TempDir, Checkouts) {
    let root = tempfile::tempdir().unwrap();
    let checkouts = Checkouts::open(&root.path().join("checkouts"), retained).unwrap();
    (root, checkouts)
}

async fn tree_of(files: &[(&str, &str)]) -> Tree {
    let mut tree = empty();
    for (name, text) in files {
        tree = tree
            .with_file(&path(name), Bytes::from((*text).to_owned()), false)
            .await
            .unwrap();
    }
    tree.save().await.unwrap()
}

/// Returns all entries of a tree: the texts of files, and where symlinks lead.
async fn shown(tree: &Tree) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for (path, entry) in tree.walk(None).await.unwrap() {
        let text = match &entry {
            Entry::File { is_executable, .. } => {
                let bytes = tree.read_entry(&entry).await.unwrap();
                let mark = if *is_executable { "*" } else { "" };
                format!("{mark}{}", String::from_utf8_lossy(&bytes))
            }
            Entry::Symlink { target } => format!("-> {target}"),
            Entry::Directory { .. } => "/".to_owned(),
        };
        shown.insert(path.to_string(), text);
    }
    shown
}

/// Returns everything in a directory in the same form.
fn on_disk(root: &Path) -> BTreeMap<String, String> {
    fn add(root: &Path, above: &str, shown: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(root).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = if above.is_empty() {
                name
            } else {
                format!("{above}/{name}")
            };
            let kind = entry.file_type().unwrap();
            let text = if kind.is_symlink() {
                format!("-> {}", fs::read_link(entry.path()).unwrap().display())
            } else if kind.is_dir() {
                add(&entry.path(), &path, shown);
                "/".to_owned()
            } else {
                let mode = entry.metadata().unwrap().permissions().mode();
                let mark = if mode & 0o100 != 0 { "*" } else { "" };
                format!("{mark}{}", fs::read_to_string(entry.path()).unwrap())
            };
            shown.insert(path, text);
        }
    }
    let mut shown = BTreeMap::new();
    add(root, "", &mut shown);
    shown
}

fn ephemeral() -> PathPatterns {
    PathPatterns::new(["target/", "*.tmp"]).unwrap()
}

async fn scan(checkout: &mut Checkout) -> Scanned {
    checkout.scan(&ephemeral()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_tree_can_have_is_skipped_and_named() {
    let (_root, checkouts) = opened(4);
    let mut checkout = checkouts.take(LINE, &empty()).await.unwrap();
    let dir = checkout.directory.files();
    symlink("/etc/passwd", dir.join("absolute")).unwrap();
    symlink("../../x", dir.join("outside")).unwrap();
    let pipe = dir.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    fs::write(dir.join("line\nbreak"), "x").unwrap();
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff\xfe");
    fs::write(dir.join(odd), "x").unwrap();
    fs::write(dir.join("good"), "good").unwrap();
    let scanned = scan(&mut checkout).await;
    assert_eq!(
        shown(&scanned.tree).await,
        BTreeMap::from([("good".to_owned(), "good".to_owned())])
    );
    let mut skipped: Vec<_> = scanned.skipped.named.iter().map(|one| one.path.as_str()).collect();
    skipped.sort_unstable();
    assert_eq!(
        skipped,
        ["absolute", "line\nbreak", "outside", "pipe", "\u{fffd}\u{fffd}"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_updated_and_no_symlink_is_followed() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x"), "precious").unwrap();
    let checkouts = Checkouts::open(&root.path().join("checkouts"), 4).unwrap();
    let first = tree_of(&[("a/b/c", "1"), ("a/d", "2"), ("e", "3")]).await;
    let mut checkout = checkouts.take(LINE, &first).await.unwrap();
    let dir = checkout.directory.files();
    // A command replaces a directory by a symlink, and nobody scans: the worst that an update
    // meets.
    fs::remove_dir_all(dir.join("a/b")).unwrap();
    symlink(outside.path(), dir.join("a/b")).unwrap();
    let second = first
        .with_file(&path("a/b/x"), Bytes::from_static(b"new"), true)
        .await
        .unwrap();
    let second = second.without(&path("e")).await.unwrap().save().await.unwrap();
    checkout.update(&second).await.unwrap();
    assert_eq!(fs::read_to_string(outside.path().join("x")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(dir.join("a/b/x")).unwrap(), "new");
    let third = second.without(&path("a")).await.unwrap();
    let third = third
        .with_file(&path("a"), Bytes::from_static(b"file"), false)
        .await
        .unwrap()
        .save()
        .await
        .unwrap();
    checkout.update(&third).await.unwrap();
    assert_eq!(on_disk(&dir), shown(&third).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retained_directory_serves_one_run_and_holds_only_its_tree() {
    let (_root, checkouts) = opened(1);
    let tree = tree_of(&[("a", "1")]).await;
    let checkout = checkouts.take(LINE, &tree).await.unwrap();
    let first = checkout.directory.files();
    fs::create_dir(first.join("target")).unwrap();
    fs::write(checkout.directory.scratch().join("t"), "t").unwrap();
    drop(checkout);
    until(|| !first.join("target").exists()).await;
    let again = retained(&checkouts, &tree, &first).await;
    let other = checkouts.take(LINE, &tree).await.unwrap();
    assert_ne!(other.directory.files(), first);
    assert_eq!(on_disk(&first), shown(&tree).await);
    assert!(fs::read_dir(again.directory.scratch()).unwrap().next().is_none());
    drop(again);
    drop(other);
    until(|| !first.exists()).await;
}

#[test]
fn a_directory_that_others_can_enter_is_refused() {
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let refused = Checkouts::open(root.path(), 1).unwrap_err();
    assert!(format!("{refused:?}").contains("0700"), "{refused:?}");
}

/// Waits for the janitor.
async fn until(condition: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the janitor does not work");
}

/// Takes directories until the retained one comes.
async fn retained(checkouts: &Checkouts, tree: &Tree, files: &Path) -> Checkout {
    loop {
        let mut taken = checkouts.take(LINE, tree).await.unwrap();
        if taken.directory.files() == files {
            return taken;
        }
        taken.for_command();
    }
}

#[test]
fn deep_and_unreadable_directories_are_removed() {
    let root = tempfile::tempdir().unwrap();
    let opened = beneath::open_root(root.path()).unwrap();
    let mut inner = level::Level::open(root.path()).unwrap().make("deep").unwrap().0;
    for _ in 0..6_000 {
        let _ = fs::File::from(
            rustix::fs::openat(
                &inner,
                "f",
                rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY,
                rustix::fs::Mode::RWXU,
            )
            .unwrap(),
        );
        rustix::fs::mkdirat(&inner, "d", rustix::fs::Mode::RWXU).unwrap();
        inner = beneath::open_directory(&inner, "d").unwrap();
    }
    rustix::fs::chmodat(&opened, "deep", rustix::fs::Mode::empty(), rustix::fs::AtFlags::empty()).unwrap();
    removal::remove(&opened, "deep").unwrap();
    assert!(!root.path().join("deep").exists());
}

#[test]
fn a_directory_is_removed_in_turns() {
    let root = tempfile::tempdir().unwrap();
    let mut files = 0;
    for path in ["wide", "wide/a/b/c/d", "wide/a/b/e", "wide/.removed-2", "wide/f"] {
        let directory = root.path().join(path);
        fs::create_dir_all(&directory).unwrap();
        for number in 0..20 {
            fs::write(directory.join(number.to_string()), "").unwrap();
            files += 1;
        }
    }
    let opened = beneath::open_root(root.path()).unwrap();
    let mut turns = 1;
    while let Err(error) = removal::remove_within(&opened, "wide", &mut removal::Budget::new(10)) {
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
        turns += 1;
    }
    assert!(!root.path().join("wide").exists());
    // No work is done twice, except opening the directory.
    assert!((files / 10..files / 4).contains(&turns), "{turns}");
}

#[test]
fn folders_of_ended_processes_are_removed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().join("checkouts");
    fs::DirBuilder::new().mode(0o700).create(&root).unwrap();
    let old = root.join("old");
    fs::create_dir(&old).unwrap();
    let lock = root.join("old.lock");
    fs::write(&lock, "").unwrap();
    // The lock of a process that ended before it had a folder.
    fs::write(root.join("early.lock"), "").unwrap();
    let living = Checkouts::open(&root, 1).unwrap();
    let _second = Checkouts::open(&root, 1).unwrap();
    for _ in 0..500 {
        if !lock.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(!old.exists());
    // Each has a folder and its lock.
    assert_eq!(fs::read_dir(&root).unwrap().count(), 4);
    drop(living);
}

#[derive(Debug, Clone)]
enum Act {
    Write(String, u8),
    Remove(String),
    Directory(String),
    Link(String, String),
    Rename(String, String),
    /// A file tool changes the tree.
    Tool(String, u8),
    Scan,
}

fn any_path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4).prop_map(|names| names.join("/"))
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (any_path(), any::<u8>()).prop_map(|(path, byte)| Act::Write(path, byte)),
        2 => any_path().prop_map(Act::Remove),
        1 => any_path().prop_map(Act::Directory),
        1 => (any_path(), prop::sample::select(vec!["a", "b", "c"])).prop_map(|(path, to)| Act::Link(path, to.to_owned())),
        1 => (any_path(), any_path()).prop_map(|(from, to)| Act::Rename(from, to)),
        2 => (any_path(), any::<u8>()).prop_map(|(path, byte)| Act::Tool(path, byte)),
        2 => Just(Act::Scan),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_acts_of_commands_and_tools_end_in_equal_trees(acts in prop::collection::vec(any_act(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        runtime.block_on(async {
            let (_root, checkouts) = opened(1);
            let mut checkout = checkouts.take(LINE, &empty()).await.unwrap();
            do_acts(&checkouts, &mut checkout, acts).await;
        });
    }
}

/// Does acts in a directory. Its tree is compared with what commands see, and restored elsewhere.
async fn do_acts(checkouts: &Checkouts, checkout: &mut Checkout, acts: Vec<Act>) {
    for act in acts.into_iter().chain([Act::Scan]) {
        let dir = checkout.directory.files();
        // A failed act, such as a write below a file, changes nothing.
        match act {
            Act::Write(path, byte) => {
                let path = dir.join(path);
                let _ = fs::create_dir_all(path.parent().unwrap());
                let _ = fs::write(path, format!("{byte}"));
            }
            Act::Remove(path) => {
                let path = dir.join(path);
                let _ = fs::remove_file(&path);
                let _ = fs::remove_dir_all(&path);
            }
            Act::Directory(path) => drop(fs::create_dir_all(dir.join(path))),
            Act::Link(path, to) => drop(symlink(to, dir.join(path))),
            Act::Rename(from, to) => drop(fs::rename(dir.join(from), dir.join(to))),
            Act::Tool(name, byte) => {
                let tree = scan(checkout).await.tree;
                if let Ok(tree) = tree
                    .with_file(&path(&name), Bytes::from(format!("{byte}")), false)
                    .await
                {
                    let tree = tree.save().await.unwrap();
                    checkout.update(&tree).await.unwrap();
                }
            }
            Act::Scan => {
                let seen = on_disk(&dir);
                let scanned = scan(checkout).await;
                assert_eq!(shown(&scanned.tree).await, seen);
                let saved = scanned.tree.save().await.unwrap();
                let elsewhere = checkouts.take(LINE, &saved).await.unwrap();
                assert_eq!(on_disk(&elsewhere.directory.files()), seen);
            }
        }
    }
}

/// A process that writes all the time, to files whose size stays the same.
#[tokio::test]
async fn nothing_that_is_written_during_scans_is_lost() {
    let (_directory, checkouts) = opened(1);
    let mut checkout = checkouts
        .take(LINE, &tree_of(&[("same", "0000"), ("d/gone", "x")]).await)
        .await
        .unwrap();
    checkout.begin_live(&ephemeral()).await.unwrap();
    let files = checkout.for_command().files;
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let root = files.clone();
    let writer = std::thread::spawn(move || {
        for number in 0_u32.. {
            fs::write(root.join("same"), format!("{:04}", number % 10_000)).unwrap();
            let (one, other) = (root.join("d"), root.join("e"));
            let _ = fs::rename(&one, &other).or_else(|_| fs::rename(&other, &one));
            // The kinds of the entries at a path change.
            let path = root.join(format!("k{}", number % 5));
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            match number % 3 {
                0 => symlink("same", &path).unwrap(),
                1 => fs::create_dir_all(path.join("in/ner")).unwrap(),
                _ => fs::write(&path, number.to_string()).unwrap(),
            }
            fs::create_dir_all(root.join("target")).unwrap();
            if stopped.try_recv().is_ok() {
                return;
            }
        }
    });
    for _ in 0..100 {
        let scanned = checkout.rescan(true).await.unwrap();
        assert!(
            checkout.is_live() && scanned.skipped.named.iter().all(|one| one.path == "target"),
            "{:?}",
            scanned.skipped
        );
        // A tool adds a file meanwhile.
        let tree = scanned
            .tree
            .with_file(&path("added"), Bytes::from("A"), false)
            .await
            .unwrap();
        checkout.update(&tree.save().await.unwrap()).await.unwrap();
    }
    stop.send(()).unwrap();
    writer.join().unwrap();
    let scanned = checkout.rescan(false).await.unwrap();
    assert!(!checkout.is_live());
    fs::remove_dir_all(files.join("target")).unwrap();
    assert_eq!(shown(&scanned.tree).await, on_disk(&files));
}
