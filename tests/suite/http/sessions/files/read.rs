//! The bytes of files: headers, ranges, conditions, and paths that lead nowhere.

use reqwest::header::{CONTENT_RANGE, IF_NONE_MATCH, IF_RANGE, RANGE};
use serde_json::json;

use super::{change, get_file, hash, id_of, put_blob, session, session_with};
use crate::http::service::{NOWHERE, Service};

on_every_store! {
    a_file_is_an_attachment_that_no_browser_runs,
    a_caller_that_has_a_file_does_not_get_it_again,
    a_range_of_a_file_is_read,
    a_large_file_comes_back_as_it_was,
    paths_that_lead_nowhere_are_refused,
}

async fn a_file_is_an_attachment_that_no_browser_runs(service: &Service) {
    let page = "<script>alert(1)</script>";
    let session_id = session_with(service, &[("a/päge \"1\".html", page), ("b", "")]).await;
    let answer = get_file(service, &session_id, "a/p%C3%A4ge%20%221%22.html", &[]).await;
    assert_eq!((answer.status.as_u16(), answer.text().as_str()), (200, page));
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-length", "25"),
        (
            "content-disposition",
            "attachment; filename*=UTF-8''p%C3%A4ge%20%221%22.html",
        ),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("cache-control", "private, no-cache"),
        ("accept-ranges", "bytes"),
        ("etag", &format!("\"{}\"", hash(page.as_bytes()))),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    let answer = get_file(service, &session_id, "b", &[]).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0));
    assert_eq!(answer.header("content-type"), "application/octet-stream");
    let path = format!("/v1/sessions/{session_id}/files/b");
    let head = service.request(reqwest::Method::HEAD, &path).send().await.unwrap();
    assert_eq!(head.status(), 200);
}

async fn a_caller_that_has_a_file_does_not_get_it_again(service: &Service) {
    let session_id = session_with(service, &[("a", "12345")]).await;
    let tag = format!("\"{}\"", hash(b"12345"));
    for given in [tag.clone(), format!("W/{tag}, \"x\""), "*".to_owned()] {
        let answer = get_file(service, &session_id, "a", &[(IF_NONE_MATCH, &given)]).await;
        assert_eq!((answer.status.as_u16(), answer.header("etag")), (304, tag.as_str()));
        assert_eq!(answer.body, b"");
    }
    let answer = get_file(service, &session_id, "a", &[(IF_NONE_MATCH, "\"x\"")]).await;
    assert_eq!(answer.status, 200);
}

async fn a_range_of_a_file_is_read(service: &Service) {
    let session_id = session_with(service, &[("a", "0123456789"), ("empty", "")]).await;
    let tag = format!("\"{}\"", hash(b"0123456789"));
    for (range, text, content_range) in [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=5-100", "56789", "bytes 5-9/10"),
    ] {
        for headers in [&[(RANGE, range)][..], &[(RANGE, range), (IF_RANGE, &tag)]] {
            let answer = get_file(service, &session_id, "a", headers).await;
            assert_eq!((answer.status.as_u16(), answer.text().as_str()), (206, text), "{range}");
            assert_eq!(answer.header(CONTENT_RANGE.as_str()), content_range);
            assert_eq!(answer.header("content-length"), text.len().to_string());
        }
    }
    for headers in [
        &[(RANGE, "bytes=0-1,3-4")][..],
        &[(RANGE, "lines=0-1")],
        &[(RANGE, "bytes=0-1"), (IF_RANGE, "\"x\"")],
    ] {
        let answer = get_file(service, &session_id, "a", headers).await;
        assert_eq!((answer.status.as_u16(), answer.text().as_str()), (200, "0123456789"));
    }
    for (path, range, size) in [("a", "bytes=10-", 10), ("a", "bytes=-0", 10), ("empty", "bytes=0-", 0)] {
        let answer = get_file(service, &session_id, path, &[(RANGE, range)]).await;
        answer.assert_problem("range_not_satisfiable");
        assert_eq!(answer.header(CONTENT_RANGE.as_str()), format!("bytes */{size}"));
    }
}

/// The file is stored in chunks.
async fn a_large_file_comes_back_as_it_was(service: &Service) {
    let bytes: Vec<u8> = (0..1_500_000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    assert_eq!(put_blob(service, &hash(&bytes), &bytes).await.status, 201);
    let base = session(service).await;
    let changes = json!([{"path": "large.bin", "content": {"blob": hash(&bytes)}}]);
    let session_id = id_of(&change(service, &base, &changes).await.ok());
    let answer = get_file(service, &session_id, "large.bin", &[]).await;
    assert!(answer.body == bytes);
    let answer = get_file(service, &session_id, "large.bin", &[(RANGE, "bytes=3000000-3000009")]).await;
    assert_eq!(answer.body, bytes[3_000_000..3_000_010]);
}

async fn paths_that_lead_nowhere_are_refused(service: &Service) {
    let session_id = session_with(service, &[("a/b", "x")]).await;
    for (path, code) in [
        ("b", "file_not_found"),
        ("a", "file_not_found"),
        ("a/b/c", "file_not_found"),
        ("%2e%2e/a", "invalid_path"),
        ("a%2F..%2Fa%2Fb", "invalid_path"),
        ("a//b", "invalid_path"),
        ("a/b%00", "invalid_path"),
        ("%2Fetc/passwd", "invalid_path"),
        ("a%0Ab", "invalid_path"),
        ("a/%ff", "invalid_utf8"),
        ("a/b?x=1", "unknown_parameter"),
    ] {
        // The client would resolve some of these paths itself.
        let path = format!("/v1/sessions/{session_id}/files/{path}");
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = service.send_raw(request.as_bytes()).await;
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{path}: {answer}");
    }
    get_file(service, NOWHERE, "a", &[])
        .await
        .assert_problem("session_not_found");
}
