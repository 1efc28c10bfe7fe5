//! The guides as the service shows them, as Markdown and as HTML that needs no script. No link is
//! broken.

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
        assert!(text.contains("<h1") && !text.contains("<script"), "{page}");
        let own: BTreeSet<String> = values(&text, "id").into_iter().map(str::to_owned).collect();
        for link in values(&text, "href").into_iter().filter(|link| !link.contains("://")) {
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
