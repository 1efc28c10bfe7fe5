//! `list_files` and `glob`.

use serde_json::json;

use super::Desk;
use crate::support::text::assert_contains;

async fn desk() -> Desk {
    let files = [
        "README.md",
        "src/main.rs",
        "src/b/lib.rs",
        "src/b/x.ts",
        ".agent/output/a.rs",
    ];
    Desk::with_files(&files.map(|path| (path, "12345"))).await
}

#[tokio::test]
async fn a_directory_is_listed_with_sizes() {
    let desk = desk().await;
    let list = async |arguments| desk.call("list_files", arguments).await.unwrap();
    assert_eq!(
        list(json!({})).await,
        ".:\n.agent/ (1 file, 5 bytes)\nREADME.md (5 bytes)\nsrc/ (3 files, 15 bytes)\n[3 entries]"
    );
    let whole = list(json!({"path": ""})).await;
    assert_eq!(whole, list(json!({"path": "/workspace"})).await);
    assert_eq!(
        list(json!({"path": "src", "recursive": true})).await,
        "src:\nb/ (2 files, 10 bytes)\nb/lib.rs (5 bytes)\nb/x.ts (5 bytes)\nmain.rs (5 bytes)\n[4 entries]"
    );
    assert_eq!(
        list(json!({"recursive": true, "offset": 4, "limit": 2})).await,
        ".:\nREADME.md (5 bytes)\nsrc/ (3 files, 15 bytes)\n[entries 4 to 5 of 9; read on with offset 6]"
    );
    assert_eq!(
        Desk::new().call("list_files", json!({})).await.unwrap(),
        "The workspace is empty."
    );
    for (path, error) in [
        ("README.md", "README.md is a file, not a directory"),
        ("scr", "scr does not exist; did you mean src?"),
    ] {
        let found = desk.call("list_files", json!({"path": path})).await.unwrap_err();
        assert_contains!(found, error);
    }
    let past = desk.call("list_files", json!({"offset": 4})).await.unwrap_err();
    assert_eq!(past, "entry 4 is past the end: there are 3 entries");
}

#[tokio::test]
async fn a_pattern_finds_files_by_path() {
    let desk = desk().await;
    let find = async |arguments| desk.call("glob", arguments).await.unwrap();
    assert_eq!(
        find(json!({"pattern": "*.rs"})).await,
        "src/b/lib.rs\nsrc/main.rs\n[2 files]"
    );
    assert_eq!(find(json!({"pattern": "src/*.rs"})).await, "src/main.rs\n[1 file]");
    assert_eq!(
        find(json!({"pattern": "**/*.{rs,ts}", "path": "src/b"})).await,
        "src/b/lib.rs\nsrc/b/x.ts\n[2 files]"
    );
    assert_eq!(
        find(json!({"pattern": "*.rs", "path": ".agent"})).await,
        ".agent/output/a.rs\n[1 file]"
    );
    assert_eq!(find(json!({"pattern": "*.py"})).await, "No file in . matches \"*.py\".");
    assert_eq!(
        find(json!({"pattern": "**", "limit": 1, "offset": 2})).await,
        "src/b/lib.rs\n[files 2 to 2 of 4; read on with offset 3]"
    );
    let error = desk.call("glob", json!({"pattern": "src/[a"})).await.unwrap_err();
    assert_contains!(error, "the pattern \"src/[a\" is invalid");
}

#[tokio::test]
async fn many_files_are_shown_in_pages() {
    let desk = Desk::new();
    let mut edit = desk.environment.edit().await.unwrap();
    for number in 0..1_500 {
        let path = super::parsed(&format!("{}/{number:04}", "d".repeat(150)));
        edit.tree = edit.tree.with_file(&path, bytes::Bytes::new(), false).await.unwrap();
    }
    let tree = edit.tree.clone();
    edit.finish(tree).await.unwrap();
    let first = desk.call("glob", json!({"pattern": "*"})).await.unwrap();
    assert_contains!(first, "[files 1 to 200 of 1500; read on with offset 201]");
    // A page has a limit of bytes, too.
    let page = desk
        .call("glob", json!({"pattern": "*", "limit": 1_000}))
        .await
        .unwrap();
    assert!(page.len() < 61_000 && page.contains("[files 1 to 38"), "{}", page.len());
}

/// As git and ripgrep do it.
#[tokio::test]
async fn ignored_files_are_left_out_unless_they_are_asked_for() {
    let desk = Desk::with_files(&[
        (".gitignore", "*.log\n/build/\n!keep.log\n[z-a]\n"),
        (".git/config", "x"),
        ("a.log", "x"),
        ("keep.log", "x"),
        ("build/out.rs", "x"),
        ("src/main.rs", "x"),
        ("src/build/mod.rs", "x"),
        ("src/.gitignore", "gen\n!a.log\n"),
        ("src/gen/deep/x.rs", "x"),
        ("src/a.log", "x"),
        ("src/sub/b.log", "x"),
    ])
    .await;
    let find = async |arguments| desk.call("glob", arguments).await.unwrap();
    assert_eq!(
        find(json!({"pattern": "**"})).await,
        ".gitignore\nkeep.log\nsrc/.gitignore\nsrc/a.log\nsrc/build/mod.rs\nsrc/main.rs\n[6 files]\n\
         [5 ignored files left out: include_ignored includes them]"
    );
    assert_eq!(
        find(json!({"pattern": "*.rs", "include_ignored": true})).await,
        "build/out.rs\nsrc/build/mod.rs\nsrc/gen/deep/x.rs\nsrc/main.rs\n[4 files]"
    );
    assert_eq!(
        find(json!({"pattern": "config"})).await,
        "No file in . matches \"config\".\n[1 ignored file left out: include_ignored includes them]"
    );
    // The patterns of the directories above the searched one count. That it is ignored itself does
    // not.
    for (path, expected) in [
        (
            "src/sub",
            "No file in src/sub matches \"**\".\n[1 ignored file left out: include_ignored includes them]",
        ),
        ("src/gen", "src/gen/deep/x.rs\n[1 file]"),
        ("build", "build/out.rs\n[1 file]"),
        (".git", ".git/config\n[1 file]"),
    ] {
        assert_eq!(find(json!({"pattern": "**", "path": path})).await, expected);
    }
    let list = async |arguments| desk.call("list_files", arguments).await.unwrap();
    assert_eq!(
        list(json!({"path": "src", "recursive": true})).await,
        "src:\n.gitignore (11 bytes)\na.log (1 bytes)\nbuild/ (1 file, 1 bytes)\nbuild/mod.rs (1 bytes)\n\
         main.rs (1 bytes)\nsub/ (1 file, 1 bytes)\n[6 entries]\n\
         [2 ignored files left out: include_ignored includes them]"
    );
    // A directory alone is listed with all that it has.
    assert_contains!(
        list(json!({})).await,
        ".git/ (1 file",
        "a.log (1",
        "build/ (1 file",
        "[6 entries]"
    );
    let grep = async |arguments| desk.call("grep", arguments).await.unwrap();
    assert_eq!(
        grep(json!({"pattern": "x", "glob": "*.rs", "mode": "files"})).await,
        "src/build/mod.rs\nsrc/main.rs\n[2 files]\n[2 ignored files left out: include_ignored includes them]"
    );
    assert_eq!(
        grep(json!({"pattern": "x", "path": "a.log", "mode": "files"})).await,
        "a.log\n[1 file]"
    );
}
