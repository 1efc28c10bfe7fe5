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

/// Returns the codes of failed runs.
async fn run_errors(service: &Service) -> Vec<String> {
    let page = service.try_get("/docs/problems/run-errors").await.text();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_crawl_of_the_pages_finds_no_link_that_leads_nowhere() {
    let service = Service::start().await;
    let codes = run_errors(&service).await;
    let codes = codes
        .iter()
        .map(String::as_str)
        .chain(ProblemCode::ALL.iter().map(|code| code.as_str()));
    let codes = codes.map(|code| format!("/docs/problems/{code}"));
    let begin = ["/docs/guides", "/docs/problems", "/docs/problems/"].map(str::to_owned);
    let mut waiting: Vec<String> = codes.chain(begin).collect();
    let (mut anchors, mut links) = (BTreeMap::new(), Vec::new());
    while let Some(page) = waiting.pop() {
        if anchors.contains_key(&page) || page == "/docs/" {
            continue;
        }
        let mut html = as_a_browser(&service, &page).await;
        if html.status == 308 {
            // The links are followed from here, as a reader does who does not know of the redirect.
            html = as_a_browser(&service, html.header("location")).await;
        }
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
    assert!(links.len() > 300, "{} links", links.len());
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
            let link = format!("](/docs/problems/{}.md)", code.as_str());
            assert!(list.contains(&link), "{link}");
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
        assert_eq!(page.status, 200);
        assert_eq!(without_links(&page.text()), without_links(code.page()));
    }
    let codes = run_errors(&service).await;
    assert!(codes.len() > 30, "{codes:?}");
    for code in codes {
        let page = service.try_get(&format!("/docs/problems/{code}")).await;
        assert_eq!(page.status, 200, "{code}");
        let is_problem = ProblemCode::ALL.iter().any(|known| known.as_str() == code);
        let row = format!("| `{code}` |");
        assert!(
            is_problem || page.text().lines().any(|line| line.starts_with(&row)),
            "{code}"
        );
    }
    for nothing in ["model_", "model", "%60", "nothing"] {
        let page = service.try_get(&format!("/docs/problems/{nothing}")).await;
        page.assert_problem("route_not_found");
    }
    service.finish().await;
}
