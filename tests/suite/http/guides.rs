//! The guides as the service shows them, as Markdown and as HTML that works without scripts. No
//! link is broken.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use agent::RunErrorCode;
use agent_runtime::http::ProblemCode;
use reqwest::Method;

use super::service::Service;
use crate::support::answer::{Answer, read};

/// The file of all settings.
const SETTINGS: &str = "/config/default.toml";
/// The files of the guides.
const ASSETS: &str = "/docs/assets/";
/// The policy of a page: no inline script, no inline style, and no other host.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// Returns the names of all files of Markdown in the folder of the documentation.
fn files() -> Vec<String> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "md"))
        .collect()
}

async fn as_a_browser(service: &Service, path: &str) -> Answer {
    let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    read(service.request(Method::GET, path).header("accept", accept)).await
}

/// Returns the values of an attribute.
fn values<'h>(html: &'h str, attribute: &str) -> Vec<&'h str> {
    let begin = format!(" {attribute}=\"");
    html.split(begin.as_str())
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect()
}

/// Returns the place that a link of a page leads to, without its anchor.
fn target(page: &str, link: &str) -> String {
    let base = reqwest::Url::parse("http://service").unwrap().join(page).unwrap();
    base.join(link).unwrap().path().to_owned()
}

/// Checks that a page has one heading of the first level, and nothing that its policy forbids.
fn assert_strict(html: &str, page: &str) {
    let script = "<script type=\"module\" src=\"/docs/assets/guides.js\"></script>";
    assert!(html.contains(script), "{page}");
    for (words, count) in [("<h1", 1), ("<script", 1), ("<style", 0), (" style=\"", 0), ("<img", 0)] {
        assert_eq!(html.matches(words).count(), count, "{page}: {words}");
    }
}

#[tokio::test]
async fn a_crawl_of_the_pages_finds_no_link_that_leads_nowhere() {
    let service = Service::start().await;
    let mut waiting = vec!["/docs/guides".to_owned()];
    let (mut anchors, mut links) = (BTreeMap::new(), Vec::new());
    while let Some(page) = waiting.pop() {
        if anchors.contains_key(&page) || page == "/docs/" || page == SETTINGS {
            continue;
        }
        let html = as_a_browser(&service, &page).await;
        assert_eq!(
            (html.status.as_u16(), html.header("content-type"), html.header("vary")),
            (200, "text/html; charset=utf-8", "accept"),
            "{page}"
        );
        let text = html.text();
        assert_strict(&text, &page);
        let own: BTreeSet<String> = values(&text, "id").into_iter().map(str::to_owned).collect();
        assert_eq!(own.len(), values(&text, "id").len(), "{page} has an id twice");
        // The console is off in this service.
        let others = ["data:", ASSETS, "/console"];
        let is_page = |link: &&str| !link.contains("://") && !others.iter().any(|other| link.starts_with(other));
        for link in values(&text, "href").into_iter().filter(is_page) {
            waiting.push(target(&page, link));
            links.push((page.clone(), link.to_owned()));
        }
        anchors.insert(page, own);
    }
    for file in files() {
        assert!(
            anchors.contains_key(&format!("/docs/{file}")),
            "no page leads to {file}"
        );
    }
    let searched = service.try_get("/docs/assets/search.json").await.json();
    assert_eq!(searched.as_array().unwrap().len(), files().len());
    for guide in searched.as_array().unwrap() {
        let path = guide["path"].as_str().unwrap();
        for heading in guide["headings"].as_array().unwrap() {
            let anchor = heading["anchor"].as_str().unwrap();
            assert!(anchors[path].contains(anchor), "{path} has no {heading}");
        }
    }
    for (page, link) in &links {
        let Some((_, anchor)) = link.split_once('#') else {
            continue;
        };
        assert!(
            anchors[&target(page, link)].contains(anchor),
            "{page} has the link {link}"
        );
    }
    assert!(links.iter().any(|(page, link)| target(page, link) == SETTINGS));
    assert!(service.try_get(SETTINGS).await.text().contains("\n[http]\n"));
    assert!(links.len() > 300, "{} links", links.len());
    service.finish().await;
}

#[tokio::test]
async fn guides_have_all_their_files_without_the_console() {
    let service = Service::start_with(&[("console.enabled", "false")]).await;
    service
        .try_get("/console/app.css")
        .await
        .assert_problem("route_not_found");
    let page = as_a_browser(&service, "/docs/agents.md").await;
    let html = page.text();
    let mut waiting: Vec<String> = ["src", "href"]
        .iter()
        .flat_map(|attribute| values(&html, attribute))
        .filter(|link| link.starts_with(ASSETS))
        .map(str::to_owned)
        .collect();
    waiting.push("/docs/assets/search.json".to_owned());
    let mut found = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        let file = service.try_get(&path).await;
        assert_eq!(
            (file.status.as_u16(), file.header("content-security-policy")),
            (200, POLICY),
            "{path}"
        );
        let again = service
            .request(Method::GET, &path)
            .header("if-none-match", file.header("etag"));
        assert_eq!(read(again).await.status, 304, "{path}");
        let name = path.strip_prefix(ASSETS).unwrap();
        if name != "search.json" {
            let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("console").join(name);
            assert!(file.body == fs::read(written).unwrap(), "{path}");
        }
        let text = file.text();
        let imports = text
            .split(" from '")
            .skip(1)
            .map(|rest| rest.split('\'').next().unwrap());
        waiting.extend(
            imports
                .map(|import| target(&path, import))
                .filter(|path| !found.contains(path)),
        );
        found.insert(path);
    }
    assert_eq!(found.len(), 5, "{found:?}");
    assert_eq!(page.header("content-security-policy"), POLICY);
    for name in ["", "api.js", "index.html", "logic/search.js/x"] {
        let answer = service.try_get(&format!("{ASSETS}{name}")).await;
        answer.assert_problem("route_not_found");
    }
    service.finish().await;
}

#[tokio::test]
async fn links_of_the_console_lead_to_guides() {
    let service = Service::start().await;
    let mut links = BTreeSet::new();
    for folder in ["console", "console/pages", "console/parts"] {
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "js") {
                let text = fs::read_to_string(path).unwrap();
                let found = values(&text, "href")
                    .into_iter()
                    .filter(|link| link.starts_with("/docs/"));
                links.extend(found.map(str::to_owned));
            }
        }
    }
    assert!(links.len() > 4, "{links:?}");
    for link in links {
        let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let page = as_a_browser(&service, path).await;
        assert_eq!(page.status, 200, "{link}");
        assert!(
            anchor.is_empty() || values(&page.text(), "id").contains(&anchor),
            "{link}"
        );
    }
    service.finish().await;
}

#[tokio::test]
async fn guides_are_served_as_they_were_written_with_and_without_their_ending() {
    let service = Service::start().await;
    for file in files() {
        let written = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(&file)).unwrap();
        for path in [file.as_str(), file.trim_end_matches(".md")] {
            let page = service.try_get(&format!("/docs/{path}")).await;
            assert_eq!(page.header("content-type"), "text/markdown; charset=utf-8", "{path}");
            assert_eq!(page.text(), written, "{path}");
        }
    }
    service.finish().await;
}

#[tokio::test]
async fn every_code_has_its_anchor() {
    let service = Service::start().await;
    let page = as_a_browser(&service, "/docs/problems").await.text();
    let anchors: BTreeSet<&str> = values(&page, "id").into_iter().collect();
    for code in ProblemCode::ALL {
        assert!(anchors.contains(code.as_str()), "{code:?}");
    }
    for code in RunErrorCode::ALL {
        assert!(
            page.contains(&format!("<td><code>{}</code></td>", code.as_str())),
            "{code:?}"
        );
    }
    service.finish().await;
}
