//! The pages of the console: every file in both forms with its type and its tag, and one page for
//! all views.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Client, Method, RequestBuilder, header};
use ring::digest::{SHA256, digest};

use crate::http::compression::{client, decoded};
use crate::http::service::Service;
use crate::support::answer::{Answer, read};

/// The codings that browsers accept.
const BROWSER: &str = "gzip, deflate, br, zstd";

/// Addresses of views, and of no files that are served.
const VIEWS: [&str; 8] = [
    "/console",
    "/console/",
    "/console/runs/0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11?at=3.1",
    "/console/sessions/x/files/src/app.js",
    "/console/session/",
    "/console/README.md",
    "/console/types.d.ts",
    "/console/tests/list.test.js",
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

/// Makes a request, to which `accepted` adds the codings that the caller accepts.
fn request(service: &Service, client: &Client, method: Method, path: &str, accepted: Option<&str>) -> RequestBuilder {
    let request = client.request(method, format!("http://{}{path}", service.address));
    match accepted {
        Some(codings) => request.header(header::ACCEPT_ENCODING, codings),
        None => request,
    }
}

/// Checks what all files have in common, in the form that was sent.
fn assert_served(answer: &Answer, path: &str, bytes: &[u8]) {
    assert_eq!(answer.status, 200, "{path}");
    assert!(decoded(answer) == bytes, "{path}");
    // The tag names the bytes as they are sent.
    let tag = format!("\"{}\"", blake3::hash(&answer.body));
    assert_eq!(answer.header("etag"), tag, "{path}");
    for (name, value) in [
        ("vary", "accept-encoding"),
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
async fn every_file_is_served_in_both_forms_with_its_type_and_its_tag() {
    let service = Service::start().await;
    let client = client();
    let files = files("");
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let path = format!("/console/{file}");
        let bytes = fs::read(folder().join(&file)).unwrap();
        let mut other_tag = "\"0\"".to_owned();
        for (accepted, coding) in [(None, ""), (Some(BROWSER), "gzip")] {
            let request = |method| request(&service, &client, method, &path, accepted);
            // The tag of the other form is none of this one.
            let answer = read(request(Method::GET).header(header::IF_NONE_MATCH, &other_tag)).await;
            assert_served(&answer, &path, &bytes);
            assert_eq!(answer.header("content-encoding"), coding, "{path}");
            assert_eq!(answer.header("content-type"), media_type(&file), "{path}");
            let tag = answer.header("etag").to_owned();
            let again = read(request(Method::GET).header(header::IF_NONE_MATCH, &tag)).await;
            assert_eq!((again.status.as_u16(), again.header("etag")), (304, &*tag), "{path}");
            assert_eq!(again.header("cache-control"), "no-cache", "{path}");
            assert_eq!(again.header("vary"), "accept-encoding", "{path}");
            assert!(again.body.is_empty(), "{path}");
            let head = read(request(Method::HEAD)).await;
            let length = answer.body.len().to_string();
            assert_eq!(head.header("content-length"), length, "{path}");
            assert_eq!((head.status.as_u16(), head.header("etag")), (200, &*tag), "{path}");
            other_tag = tag;
        }
    }
    // A caller that accepts other codings alone gets the plain form.
    let plain = request(&service, &client, Method::GET, "/console/app.js", Some("br, zstd"));
    let plain = read(plain).await;
    assert_eq!((plain.status.as_u16(), plain.header("content-encoding")), (200, ""));
    service.finish().await;
}

#[tokio::test]
async fn all_views_are_the_page_with_a_policy_for_its_import_map() {
    let service = Service::start().await;
    let client = client();
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
        for accepted in [None, Some(BROWSER)] {
            let answer = read(request(&service, &client, Method::GET, path, accepted)).await;
            assert_served(&answer, path, page.as_bytes());
            assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
            assert_eq!(answer.header("content-security-policy"), policy, "{path}");
        }
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
        let path = "/console/parts/a.js";
        let answer = read(request(&service, &client(), Method::GET, path, Some(BROWSER))).await;
        assert_served(&answer, "a.js", text.as_bytes());
        assert_eq!(answer.header("content-encoding"), "");
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
