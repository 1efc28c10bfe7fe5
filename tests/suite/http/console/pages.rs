//! The pages of the console: every file with its type and its tag, and one page for all views.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, header};
use ring::digest::{SHA256, digest};

use crate::http::service::Service;
use crate::support::answer::{Answer, read};

/// Addresses of views, and of no files.
const VIEWS: [&str; 5] = [
    "/console",
    "/console/",
    "/console/runs/0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11?at=3.1",
    "/console/sessions/x/files/src/app.js",
    "/console/session/",
];

/// Addresses that would lead out of the folder if their parts were followed.
const OUTSIDE: [&str; 6] = [
    "/console/../Cargo.toml",
    "/console/%2e%2e/Cargo.toml",
    "/console/..%2fCargo.toml",
    "/console/vendor/../../Cargo.toml",
    "/console/..%5cCargo.toml",
    "/console//etc/passwd",
];

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/console"))
}

/// The paths of the files that a browser needs, below the folder.
fn files(below: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder().join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{below}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&format!("{path}/")));
        } else if !path.starts_with("tests/") && ![".json", ".d.ts", ".md"].iter().any(|end| path.ends_with(end)) {
            found.push(path);
        }
    }
    found
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("svg") => "image/svg+xml",
        None => "text/plain; charset=utf-8",
        Some(other) => panic!("{path}: what is the type of .{other}?"),
    }
}

/// Checks what all files have in common.
fn assert_served(answer: &Answer, path: &str, bytes: &[u8]) {
    assert_eq!(answer.status, 200, "{path}");
    assert!(answer.body == bytes, "{path}");
    assert_eq!(answer.header("etag"), format!("\"{}\"", blake3::hash(bytes)), "{path}");
    for (name, value) in [
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(answer.header(name), value, "{path}");
    }
}

#[tokio::test]
async fn every_file_is_served_with_its_type_and_its_tag() {
    let service = Service::start().await;
    let files = files("");
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let path = format!("/console/{file}");
        let bytes = fs::read(folder().join(&file)).unwrap();
        let answer = service.try_get(&path).await;
        assert_served(&answer, &path, &bytes);
        assert_eq!(answer.header("content-type"), media_type(&file), "{path}");
        let tag = answer.header("etag").to_owned();
        let again = service.request(Method::GET, &path).header(header::IF_NONE_MATCH, &tag);
        let again = read(again).await;
        assert_eq!(
            (again.status.as_u16(), again.header("etag")),
            (304, tag.as_str()),
            "{path}"
        );
        assert_eq!(again.header("cache-control"), "no-cache", "{path}");
        assert!(again.body.is_empty(), "{path}");
        let stale = service
            .request(Method::GET, &path)
            .header(header::IF_NONE_MATCH, "\"0\"");
        assert_served(&read(stale).await, &path, &bytes);
        let head = read(service.request(Method::HEAD, &path)).await;
        assert_eq!(head.header("content-length"), bytes.len().to_string(), "{path}");
        assert_eq!(
            (head.status.as_u16(), head.header("etag")),
            (200, tag.as_str()),
            "{path}"
        );
    }
    service.finish().await;
}

#[tokio::test]
async fn all_views_are_the_page_with_a_policy_for_its_import_map() {
    let service = Service::start().await;
    let page = fs::read_to_string(folder().join("index.html")).unwrap();
    let (_, rest) = page.split_once("<script type=\"importmap\">").unwrap();
    let (map, rest) = rest.split_once("</script>").unwrap();
    assert!(!rest.contains("importmap"));
    let hash = STANDARD.encode(digest(&SHA256, map.as_bytes()));
    let policy = format!(
        "default-src 'none'; script-src 'self' 'sha256-{hash}'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    for path in VIEWS {
        let answer = service.try_get(path).await;
        assert_served(&answer, path, page.as_bytes());
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(answer.header("content-security-policy"), policy, "{path}");
    }
    // Files have no inline scripts, so their policy allows none.
    let script = service.try_get("/console/app.js").await;
    let plain = policy.replace(&format!(" 'sha256-{hash}'"), "");
    assert_eq!(script.header("content-security-policy"), plain);
    let posted = read(service.request(Method::POST, "/console/app.js")).await;
    posted.assert_problem("method_not_allowed");
    service.finish().await;
}

/// The body of a response to a request whose address no client corrects.
async fn raw(service: &Service, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let answer = service.send_raw(request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[tokio::test]
async fn no_address_leads_out_of_the_folder() {
    let service = Service::start().await;
    let page = fs::read_to_string(folder().join("index.html")).unwrap();
    for path in OUTSIDE {
        assert_eq!(raw(&service, path).await, page, "{path}");
    }
    service.finish().await;

    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("Cargo.toml"), "secret").unwrap();
    let folder = root.path().join("console");
    fs::create_dir_all(folder.join("parts")).unwrap();
    fs::write(folder.join(".env"), "secret").unwrap();
    fs::write(folder.join("index.html"), "the page").unwrap();
    fs::write(folder.join("parts/a.js"), "one").unwrap();
    let service = Service::start_with(&[("console.directory", folder.to_str().unwrap())]).await;
    for path in OUTSIDE.iter().chain(&VIEWS).chain(&["/console/.env", "/console/parts"]) {
        assert_eq!(raw(&service, path).await, "the page", "{path}");
    }
    // A changed file is there at once.
    for text in ["one", "two"] {
        fs::write(folder.join("parts/a.js"), text).unwrap();
        let answer = service.try_get("/console/parts/a.js").await;
        assert_served(&answer, "a.js", text.as_bytes());
        assert_eq!(answer.header("content-type"), "text/javascript; charset=utf-8");
    }
    service.finish().await;
}

#[tokio::test]
async fn beyond_loopback_the_console_is_served_only_if_it_is_enabled() {
    for (listen, enabled, is_served) in [
        ("127.0.0.1:80", None, true),
        ("127.0.0.1:80", Some("false"), false),
        ("0.0.0.0:80", None, false),
        ("0.0.0.0:80", Some("true"), true),
    ] {
        let enabled = enabled.map(|enabled| ("console.enabled", enabled));
        let settings: Vec<_> = [("http.listen", listen)].into_iter().chain(enabled).collect();
        let service = Service::start_with(&settings).await;
        for path in ["/console", "/console/app.js", "/console/runs", "/console/session"] {
            let answer = service.try_get(path).await;
            if is_served {
                assert_eq!(answer.status, 200, "{settings:?} {path}");
            } else {
                answer.assert_problem("route_not_found");
                assert!(answer.text().contains("console.enabled"), "{}", answer.text());
            }
        }
        service.finish().await;
    }
}
