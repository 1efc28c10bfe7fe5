//! Lists of files: a directory, everything below it, pages, and what is refused.

use serde_json::{Value, json};

use super::{changed, session, session_with};
use crate::http::service::Service;
use crate::support::members::assert_members;

on_every_store! {
    a_directory_is_listed_by_name,
    pages_list_everything_below_once,
    what_is_no_directory_is_not_listed,
}

fn paths(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["path"].as_str().unwrap()).collect()
}

async fn a_directory_is_listed_by_name(service: &Service) {
    let empty = session(service).await;
    let page = service.get(&format!("/v1/sessions/{empty}/files")).await;
    assert_eq!(page, json!({"data": [], "next_cursor": null}));
    let files = [
        ("src/main.rs", "fn main() {}"),
        ("src/a/b.txt", ""),
        ("README.md", "# Hi\n"),
    ];
    let session_id = session_with(service, &files).await;
    let list = format!("/v1/sessions/{session_id}/files");
    let page = service.get(&list).await;
    let readme = json!({"path": "README.md", "kind": "file", "size": 5, "executable": false,
        "hash": super::hash(b"# Hi\n")});
    assert_eq!(page["data"][0], readme);
    let src = &page["data"][1];
    assert_members!(src, {"path": "src", "kind": "directory", "size": 12, "files": 2});
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
    for path in ["src", "src/a"] {
        let rows = service.rows(&format!("{list}?path={path}")).await;
        assert!(
            rows.iter().all(|row| row["path"].as_str().unwrap().starts_with(path)),
            "{rows:?}"
        );
    }
    let rows = service.rows(&format!("{list}?path=&recursive=true")).await;
    assert_eq!(
        paths(&rows),
        ["README.md", "src", "src/a", "src/a/b.txt", "src/main.rs"]
    );
    // Equal files are listed alike, with any history of changes.
    let other = session_with(service, &files[..2]).await;
    let other = changed(service, &other, &files[2..]).await;
    let list = format!("/v1/sessions/{other}/files");
    let others = service.rows(&format!("{list}?path=&recursive=true")).await;
    assert_eq!(paths(&others), paths(&rows));
}

async fn pages_list_everything_below_once(service: &Service) {
    let files: Vec<String> = (0..40).map(|n| format!("d{}/{n:02} ä%/x", n % 3)).collect();
    let changes: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), "x")).collect();
    let session_id = session_with(service, &changes).await;
    let whole = service
        .rows(&format!("/v1/sessions/{session_id}/files?recursive=true&limit=200"))
        .await;
    assert_eq!(whole.len(), 3 + 2 * files.len());
    for limit in [1, 7, 83] {
        let pages = format!("/v1/sessions/{session_id}/files?recursive=true&limit={limit}");
        assert_eq!(service.rows(&pages).await, whole);
    }
    let below = service
        .rows(&format!("/v1/sessions/{session_id}/files?path=d1&limit=3"))
        .await;
    assert_eq!(below.len(), 13);
}

async fn what_is_no_directory_is_not_listed(service: &Service) {
    let session_id = session_with(service, &[("a/b", "x")]).await;
    for (query, code) in [
        ("path=c", "file_not_found"),
        ("path=a/b", "file_not_found"),
        ("path=a/b/c", "file_not_found"),
        ("path=../a", "invalid_parameter"),
        ("path=/a", "invalid_parameter"),
        ("path=a/", "invalid_parameter"),
        ("path=a&recursive=yes", "invalid_parameter"),
        ("cursor=x", "invalid_cursor"),
        ("limit=0", "invalid_parameter"),
        ("depth=1", "unknown_parameter"),
    ] {
        let answer = service
            .try_get(&format!("/v1/sessions/{session_id}/files?{query}"))
            .await;
        answer.assert_problem(code);
    }
}
