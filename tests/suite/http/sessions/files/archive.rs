//! Archives of all files of a session.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use serde_json::json;

use super::{change, changed, hash, id_of, put_blob, session, session_with};
use crate::http::service::{NOWHERE, Service};
use crate::support::answer::Answer;

on_every_store! {
    an_archive_has_every_file,
    equal_files_make_equal_archives,
    a_zip_leads_nowhere_on_windows,
    bad_archives_are_refused,
}

async fn archive(service: &Service, session_id: &str, query: &str) -> Answer {
    service
        .try_get(&format!("/v1/sessions/{session_id}/archive{query}"))
        .await
}

/// Returns the modes and contents of a tar by path.
fn untar(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut archive = tar::Archive::new(zstd::Decoder::new(bytes).unwrap());
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        assert_eq!(entry.header().uid().unwrap(), 0);
        let is_file = entry.header().entry_type().is_file();
        assert_eq!(entry.header().mtime().unwrap() > 0, is_file, "files have their times");
        let (mode, mut content) = (entry.header().mode().unwrap(), Vec::new());
        entry.read_to_end(&mut content).unwrap();
        (path, (mode, content))
    });
    entries.collect()
}

/// Returns the same of a zip.
fn unzip(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let entries = (0..archive.len()).map(|index| {
        let mut file = archive.by_index(index).unwrap();
        let (mode, mut content) = (file.unix_mode().unwrap() & 0o777, Vec::new());
        file.read_to_end(&mut content).unwrap();
        (file.name().unwrap().into_owned(), (mode, content))
    });
    entries.collect()
}

async fn an_archive_has_every_file(service: &Service) {
    let long = format!("{}/ä b.txt", vec!["directory"; 20].join("/"));
    let large: Vec<u8> = (0..600_000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    assert_eq!(put_blob(service, &hash(&large), &large).await.status, 201);
    let base = session(service).await;
    let changes = json!([
        {"path": "bin/run", "content": "#!/bin/sh\n", "executable": true},
        {"path": "empty", "content": ""},
        {"path": "large", "content": {"blob": hash(&large)}},
        {"path": long, "content": "long"},
    ]);
    let session_id = id_of(&change(service, &base, &changes).await.ok());
    for (query, format, media_type) in [
        ("", "tar.zst", "application/zstd"),
        ("?format=tar.zst", "tar.zst", "application/zstd"),
        ("?format=zip", "zip", "application/zip"),
    ] {
        let answer = archive(service, &session_id, query).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), media_type);
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        let name = format!("attachment; filename*=UTF-8''{session_id}.{format}");
        assert_eq!(answer.header("content-disposition"), name);
        let files = if format == "zip" {
            unzip(&answer.body)
        } else {
            untar(&answer.body)
        };
        assert_eq!(files.len(), 4 + 1 + 20, "{:?}", files.keys());
        assert_eq!(files["bin/"].0, 0o755);
        assert_eq!(files["bin/run"], (0o755, b"#!/bin/sh\n".to_vec()));
        assert_eq!(files["empty"], (0o644, Vec::new()));
        assert_eq!(files[&long], (0o644, b"long".to_vec()));
        assert!(files["large"].1 == large);
    }
    let empty = archive(service, &base, "").await;
    assert!(untar(&empty.body).is_empty());
    assert!(unzip(&archive(service, &base, "?format=zip").await.body).is_empty());
}

async fn equal_files_make_equal_archives(service: &Service) {
    let one = session_with(service, &[("a/1", "x"), ("b", "y")]).await;
    let other = session_with(service, &[("b", "y"), ("c", "z")]).await;
    let other = changed(service, &other, &[("a/1", "x")]).await;
    let other = super::deleted(service, &other, &["c"]).await;
    // Those of tar have the times at which the files changed.
    let archives = [archive(service, &one, "").await, archive(service, &other, "").await];
    assert_eq!(untar(&archives[0].body), untar(&archives[1].body));
    let query = "?format=zip";
    let archives = [
        archive(service, &one, query).await,
        archive(service, &other, query).await,
    ];
    assert!(archives[0].body == archives[1].body);
}

async fn a_zip_leads_nowhere_on_windows(service: &Service) {
    let files = [
        ("..\\..\\up.bat", "1"),
        ("C:\\x", "2"),
        ("d/c:y", "3"),
        ("..%5C..%5Cup.bat", "4"),
        ("8:00", "5"),
    ];
    let session_id = session_with(service, &files).await;
    let unzipped = unzip(&archive(service, &session_id, "?format=zip").await.body);
    let names: Vec<&str> = unzipped.keys().map(String::as_str).collect();
    let expected = [
        "..%255C..%255Cup.bat",
        "..%5C..%5Cup.bat",
        "8:00",
        "C%3A%5Cx",
        "d/",
        "d/c%3Ay",
    ];
    assert_eq!(names, expected);
    // A tar has the names as they are.
    let untarred = untar(&archive(service, &session_id, "").await.body);
    assert_eq!(untarred["C:\\x"].1, b"2");
    let downloaded = super::get_file(service, &session_id, "C:%5Cx", &[]).await;
    assert_eq!(
        downloaded.header("content-disposition"),
        "attachment; filename*=UTF-8''C%3A_x"
    );
}

async fn bad_archives_are_refused(service: &Service) {
    let session_id = session(service).await;
    archive(service, &session_id, "?format=rar")
        .await
        .assert_problem("invalid_parameter");
    archive(service, &session_id, "?path=a")
        .await
        .assert_problem("unknown_parameter");
    archive(service, NOWHERE, "").await.assert_problem("session_not_found");
}
