//! Archives of what commands have made, unpacked by the programs that callers use: links, empty
//! directories and rights are in them, too.

use std::fs;
use std::path::Path;

use serde_json::json;
use test_support::databases::TestDatabase;

use super::operations::plain_shell;
use super::{calls, put_scripted};
use crate::end_to_end::on_every_store;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;

on_every_store!(archives_have_the_links_empty_directories_and_rights_of_commands);

/// Makes all kinds of entries. Links lead to files, to directories and to nothing, and their
/// targets are written in several ways.
pub(crate) const MAKE: &str = r#"umask 022
mkdir -p bin empty/inner "d ä" "deep/$(printf 'x%.0s' $(seq 120))/y"
printf '#!/bin/sh\necho ran\n' > bin/run && chmod +x bin/run && : > nothing && seq 1 30000 > large
: > "deep/$(printf 'x%.0s' $(seq 120))/y/empty" && chmod +x "deep/$(printf 'x%.0s' $(seq 120))/y/empty"
echo text > "d ä/ö .txt" && ln -s "d ä/ö .txt" "l ö"
ln -s bin/run file && ln -s bin directory && ln -s empty empty-directory && ln -s file link
ln -s bin/ slash && ln -s ./nothing dot && ln -s bin//run double && ln -s bin/../nothing back
ln -s gone dangling && ln -s ../nothing bin/up && ln -s "$(printf 'z%.0s' $(seq 150))" long
ln -s . bin/itself"#;

/// Prints the kind, the rights, the path and the target of every entry, and the hash of every file.
pub(crate) const SHOW: &str = r"find . -mindepth 1 -printf '%y %m %P -> %l\n' | LC_ALL=C sort
find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2";

async fn archives_have_the_links_empty_directories_and_rights_of_commands(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let make = calls(&[("shell", json!({"command": MAKE}))]);
    put_scripted(&app, "maker", &[make], json!({"tools": ["shell"]})).await;
    let run = app.run_with(json!({"agent": "maker", "input": "go"})).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let session_id = run["session_id"].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    fs::create_dir(&made).unwrap();
    plain_shell(&made, MAKE);
    let expected = plain_shell(&made, SHOW);
    assert_eq!(expected.matches(" -> ").count(), 25, "{expected}");
    let archive = async |query: &str| {
        let path = format!("/v1/sessions/{session_id}/archive{query}");
        let answer = app.try_get(&path).await;
        assert_eq!(answer.status, 200);
        answer.body
    };
    let tar = zstd::decode_all(&*archive("").await).unwrap();
    let zip = archive("?format=zip").await;
    for (name, bytes, unpack) in [("tar", &tar[..], "tar -xpf ../tar.archive"), ("zip", &zip[..], UNZIP)] {
        fs::write(folder.path().join(format!("{name}.archive")), bytes).unwrap();
        let unpacked = unpacked(folder.path(), name, unpack);
        assert_eq!(unpacked, expected, "{name}");
    }
    app.finish().await;
}

/// Unpacks by `unzip`, or as it does where it is not installed.
const UNZIP: &str = r#"if command -v unzip > /dev/null; then unzip -q ../zip.archive; else python3 -c '
import os, stat, zipfile
archive = zipfile.ZipFile("../zip.archive")
for entry in archive.infolist():
    mode = entry.external_attr >> 16
    if stat.S_ISLNK(mode):
        os.symlink(archive.read(entry), entry.filename.encode())
    else:
        os.chmod(archive.extract(entry), stat.S_IMODE(mode))
'; fi"#;

/// Unpacks an archive into a directory of its own, and shows what is in there.
fn unpacked(folder: &Path, name: &str, unpack: &str) -> String {
    let directory = folder.join(name);
    fs::create_dir(&directory).unwrap();
    let complaints = plain_shell(&directory, &format!("umask 022; export LC_ALL=C.UTF-8; {unpack} 2>&1"));
    assert_eq!(complaints, "", "{name}");
    plain_shell(&directory, SHOW)
}
