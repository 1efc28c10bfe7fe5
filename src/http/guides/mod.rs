//! The guides: the original Markdown or, for browsers, HTML that works without scripts.
//!
//! They need no key, and are served without the console, too. So the console's sheet and the files
//! of their own are below `/docs/assets/`.

mod frame;
mod page;
mod table;

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::{Ready, ready};
use std::sync::LazyLock;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use self::frame::framed;
use self::page::{Heading, Page, render};
use self::table::{GROUPS, Guide};
use super::codes::ProblemCode;
use super::console;
use super::console::page_file::PageFile;
use super::problem::Problem;
use super::state::Api;

/// The name of the list of all guides.
const LIST: &str = "guides";
/// The files of the console that pages of guides load.
const ASSETS: [&str; 4] = ["app.css", "guides.css", "guides.js", "logic/search.js"];
/// The titles and headings that the search reads, below `/docs/assets/`.
const SEARCH: &str = "search.json";

/// The format of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Markdown,
    Html,
}

/// Chooses HTML for browsers, which name it in the header `Accept`.
impl<S: Send + Sync> FromRequestParts<S> for Form {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let accepted = parts.headers.get_all(header::ACCEPT).iter();
        let takes_html = accepted
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.contains("text/html"));
        Ok(if takes_html { Self::Html } else { Self::Markdown })
    }
}

/// Responds with the file of all settings.
pub(super) fn settings() -> Ready<Response> {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    ready((kind, include_str!("../../../config/default.toml")).into_response())
}

/// Responds with the guide of the name, with or without `.md`, or with the list of all guides;
/// `None` if there is no such guide.
pub(super) fn find(name: &str, form: Form, headers: &HeaderMap) -> Option<Response> {
    let forms = SITE.pages.get(name.strip_suffix(".md").unwrap_or(name))?;
    let file = match form {
        Form::Markdown => &forms.markdown,
        Form::Html => &forms.html,
    };
    let mut response = file.respond(headers);
    // Pages are not compressed.
    let vary = HeaderValue::from_static("accept");
    response.headers_mut().insert(header::VARY, vary);
    Some(response)
}

/// Responds with a file that pages of guides load.
pub(super) async fn asset(api: &Api, name: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    if name == SEARCH {
        return Ok(SITE.search.respond(headers));
    }
    if !ASSETS.contains(&name) {
        let words = "the guides have no such file";
        return Err(Problem::new(ProblemCode::RouteNotFound, words));
    }
    let settings = api.console.as_ref();
    let directory = settings.and_then(|console| console.directory.as_deref());
    console::pages::file(directory, name, headers).await
}

/// Everything that the guides consist of. It is rendered once.
static SITE: LazyLock<Site> = LazyLock::new(Site::render);

#[derive(Debug)]
struct Site {
    /// The pages by their names.
    pages: HashMap<&'static str, Forms>,
    search: PageFile,
}

/// A page in each form.
#[derive(Debug)]
struct Forms {
    markdown: PageFile,
    html: PageFile,
}

/// What the search reads of a guide.
#[derive(Debug, Serialize)]
struct Entry<'p> {
    title: &'static str,
    path: String,
    headings: &'p [Heading],
}

impl Site {
    fn render() -> Self {
        let list = list();
        let list_html = framed("Guides", None, &render(&list));
        let mut pages = HashMap::from([(LIST, Forms::new(list.into(), list_html))]);
        let guides: Vec<(&Guide, Page)> = table::all().map(|guide| (guide, render(guide.markdown))).collect();
        for (guide, page) in &guides {
            let html = framed(guide.title(), Some(guide.file), page);
            let markdown = Bytes::from_static(guide.markdown.as_bytes());
            pages.insert(guide.name(), Forms::new(markdown, html));
        }
        let entries = guides.iter().map(|(guide, page)| Entry {
            title: guide.title(),
            path: format!("/docs/{}", guide.file),
            headings: &page.headings,
        });
        // Texts and lists always become JSON.
        let search = serde_json::to_vec(&entries.collect::<Vec<_>>()).unwrap_or_default();
        Self {
            pages,
            search: PageFile::plain(SEARCH, search.into()),
        }
    }
}

impl Forms {
    fn new(markdown: Bytes, html: String) -> Self {
        Self {
            markdown: PageFile::plain("page.md", markdown),
            html: PageFile::plain("page.html", html.into()),
        }
    }
}

/// Lists the guides in their groups.
fn list() -> String {
    let mut list = "# Guides\n\n[Requests](/docs/) can be tried out where scripts are allowed.\n".to_owned();
    for group in GROUPS {
        // Writing to a string can't fail.
        let _ = writeln!(list, "\n## {}\n", group.name);
        for guide in group.guides {
            let _ = writeln!(list, "- [{}](/docs/{})", guide.title(), guide.file);
        }
    }
    list
}
