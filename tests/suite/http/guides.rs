//! The guides as the service shows them: each is there, as Markdown and as HTML that needs no script, and no link leads nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use agent_runtime::http::ProblemCode;
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
async fn every_code_has_a_page_that_reads_as_it_was_written() {
    let service = Service::start().await;
    for file in files() {
        let page = service.try_get(&format!("/docs/{file}")).await;
        assert_eq!(page.header("content-type"), "text/markdown; charset=utf-8", "{file}");
        let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(&file);
        assert_eq!(page.text(), fs::read_to_string(written).unwrap(), "{file}");
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
