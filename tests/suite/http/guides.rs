//! The guides as the service shows them, as Markdown and as HTML that needs no script. No link is
//! broken.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use agent_runtime::http::ProblemCode;
use pulldown_cmark::{Event, Options, Parser, Tag};
use reqwest::Method;

use super::service::Service;
use crate::support::answer::{Answer, read};

/// Returns the places below `/docs/` of all files of Markdown in the folder of the documentation.
fn files() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let names = entries.map(|entry| format!("{folder}{}", entry.unwrap().file_name().to_str().unwrap()));
        names
            .filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "md"))
            .collect()
    };
    [names(""), names("problems/")].concat()
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

/// Returns the targets of a page's links.
fn links(markdown: &str) -> Vec<String> {
    let links = Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.to_string()),
        _ => None,
    });
    links.collect()
}

/// Returns a page with the text of each link in its place.
fn without_links(markdown: &str) -> String {
    let mut pieces = markdown.split("](");
    let mut page = pieces.next().unwrap().to_owned();
    for piece in pieces {
        page.push_str(piece.split_once(')').map_or(piece, |(_, rest)| rest));
    }
    page.replace('[', "")
}

/// Returns the place that a link of a page leads to, without its anchor.
fn target(page: &str, link: &str) -> String {
    let base = reqwest::Url::parse("http://service").unwrap().join(page).unwrap();
    base.join(link).unwrap().path().to_owned()
}

#[tokio::test]
async fn every_guide_is_served_and_no_link_leads_nowhere() {
    let service = Service::start().await;
    let (mut anchors, mut links) = (BTreeMap::new(), Vec::new());
    let pages = files().into_iter().map(|file| format!("/docs/{file}"));
    for page in pages.chain(["/docs/guides".to_owned()]) {
        let html = as_a_browser(&service, &page).await;
        assert_eq!(
            (html.status.as_u16(), html.header("content-type"), html.header("vary")),
            (200, "text/html; charset=utf-8", "accept"),
            "{page}"
        );
        let text = html.text();
        assert!(text.contains("<h1") && !text.contains("<script"), "{page}");
        let own: BTreeSet<String> = values(&text, "id").into_iter().map(str::to_owned).collect();
        links.extend(
            values(&text, "href")
                .into_iter()
                .map(|link| (page.clone(), link.to_owned())),
        );
        anchors.insert(page, own);
    }
    let mut checked = 0;
    for (page, link) in links.iter().filter(|(_, link)| !link.contains("://")) {
        let target = target(page, link);
        if target == "/docs/" {
            continue;
        }
        let known = anchors.get(&target);
        let anchor = link.split_once('#').map(|(_, anchor)| anchor);
        let leads = known.is_some_and(|known| anchor.is_none_or(|anchor| known.contains(anchor)));
        assert!(leads, "{page} has the link {link}");
        checked += 1;
    }
    assert!(checked > 300, "{checked} links");
    service.finish().await;
}

#[tokio::test]
async fn every_guide_has_the_same_links_as_markdown_and_as_html() {
    let service = Service::start().await;
    for file in files() {
        let page = format!("/docs/{file}");
        let html = as_a_browser(&service, &page).await.text();
        let of_html: Vec<&str> = values(&html, "href").into_iter().skip(1).collect();
        let markdown = service.try_get(&page).await.text();
        assert_eq!(links(&markdown), of_html, "{file}");
    }
    service.finish().await;
}

#[tokio::test]
async fn folders_and_names_without_an_ending_lead_to_pages() {
    let service = Service::start().await;
    for folder in ["/docs/problems", "/docs/problems/"] {
        let list = service.try_get(folder).await;
        let location = list.header("location").to_owned();
        assert_eq!(
            (list.status.as_u16(), location.as_str()),
            (308, "/docs/problems/README.md")
        );
        let list = service.try_get(&location).await.text();
        for code in ProblemCode::ALL {
            assert!(list.contains(&format!("]({}.md)", code.as_str())), "{}", code.as_str());
        }
    }
    for file in files() {
        let without = format!("/docs/{}", file.strip_suffix(".md").unwrap());
        let [with, without] = [format!("/docs/{file}"), without];
        let [with, without] = [service.try_get(&with).await, service.try_get(&without).await];
        assert_eq!(without.text(), with.text(), "{file}");
    }
    service.finish().await;
}

#[tokio::test]
async fn every_code_has_a_page_that_reads_as_it_was_written() {
    let service = Service::start().await;
    for file in files() {
        let page = service.try_get(&format!("/docs/{file}")).await;
        assert_eq!(page.header("content-type"), "text/markdown; charset=utf-8", "{file}");
        let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(&file);
        let written = fs::read_to_string(written).unwrap();
        assert_eq!(without_links(&page.text()), without_links(&written), "{file}");
    }
    for code in ProblemCode::ALL {
        let page = service.try_get(&format!("/docs/problems/{}", code.as_str())).await;
        assert_eq!((page.status.as_u16(), page.text().as_str()), (200, code.page()));
    }
    let of_runs = service.try_get("/docs/problems/run-errors").await.text();
    let rows = of_runs.lines().filter(|line| line.starts_with("| `"));
    let mut codes = 0;
    for row in rows {
        let code = row.split('`').nth(1).unwrap();
        let page = service.try_get(&format!("/docs/problems/{code}")).await;
        assert_eq!(page.status, 200, "{code}");
        let is_problem = ProblemCode::ALL.iter().any(|known| known.as_str() == code);
        assert!(is_problem || page.text().lines().any(|line| line == row), "{code}");
        codes += 1;
    }
    assert!(codes > 30, "{codes} codes");
    for nothing in ["model_", "model", "%60", "nothing"] {
        let page = service.try_get(&format!("/docs/problems/{nothing}")).await;
        page.assert_problem("route_not_found");
    }
    service.finish().await;
}
