//! The guides and the pages of error codes: the original Markdown or, for browsers, HTML without
//! scripts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::{Ready, ready};
use std::mem;
use std::sync::LazyLock;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Redirect, Response};
use parking_lot::Mutex;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

use super::codes::ProblemCode;
use super::parameters::PathParameters;
use super::problem::Problem;

macro_rules! guides {
    ($($name:literal)+) => {
        /// The guides by their path below `/docs/`. The same path leads to the file in the folder
        /// `docs`, so that links work.
        const GUIDES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../docs/", $name)))),+];
    };
}

guides! {
    "agents.md" "api.md" "approvals.md" "benchmarks.md" "budgets.md" "compaction.md" "configuration.md" "deployment.md"
    "environments.md" "events.md" "files.md" "guarantees.md" "hooks.md" "http-tools.md" "mcp.md" "mcp-server.md"
    "models.md" "operations.md" "sandbox.md"
    "sandbox-network.md" "scaling.md" "sessions.md" "subagents.md" "threads.md" "tools.md"
    "tour.md"
    "webhook-hook.md" "webhooks.md" "problems/README.md" "problems/run-errors.md"
}

/// The folder of the pages of codes.
const PROBLEMS: &str = "problems/";

/// The list of the pages of problems.
const ALL_PROBLEMS: &str = "problems/README.md";

/// The page of all errors that can end a run. Its table has a row for each.
const RUN_ERRORS: &str = "problems/run-errors.md";

/// The HTML around a page.
const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><title>agent-runtime</title><style>\
    body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif }\
    pre, code { background: #f2f2f2 } pre { padding: 1rem; overflow-x: auto }\
    table { border-collapse: collapse } td, th { border: 1px solid #ccc; padding: .2rem .5rem; vertical-align: top }\
    </style></head><body>\n<p><a href=\"/docs/guides\">All guides</a></p>\n";
const TAIL: &str = "</body></html>\n";

/// The format of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// Lists the guides.
pub(super) fn index(form: Form) -> Ready<Response> {
    let mut list = "# Guides\n\n[Requests](/docs/) can be tried out where scripts are allowed.\n\n".to_owned();
    for (path, text) in GUIDES {
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(path);
        // Writing to a string can't fail.
        let _ = writeln!(list, "- [{title}](/docs/{path})");
    }
    ready(respond(form, "index", "", &list))
}

/// Responds with the guide at the path, with or without `.md`; `None` if there is no such guide.
pub(super) fn find(path: &str, form: Form) -> Option<Response> {
    let path = path.strip_suffix(".md").unwrap_or(path);
    let text = guide(&format!("{path}.md"))?;
    let folder = if path.starts_with(PROBLEMS) { PROBLEMS } else { "" };
    Some(respond(form, path, folder, text))
}

fn guide(path: &str) -> Option<&'static str> {
    let guide = GUIDES.iter().find(|(known, _)| *known == path);
    guide.map(|(_, text)| *text)
}

/// Redirects to the list of problems, whose links are relative.
pub(super) fn redirect_to_problems() -> Ready<Redirect> {
    ready(Redirect::permanent(&format!("/docs/{ALL_PROBLEMS}")))
}

/// Responds with the page of a code of a problem or of a failed run.
pub(super) fn problem_page(form: Form, path: PathParameters) -> Ready<Response> {
    let name = path.into_text("code");
    let code = name.strip_suffix(".md").unwrap_or(&name);
    let page = match ProblemCode::find(code) {
        Some(code) => Some(Cow::Borrowed(code.page())),
        None => run_error_page(code).map(Cow::Owned),
    };
    let path = format!("{PROBLEMS}{code}");
    let page = page.map(|page| respond(form, &path, PROBLEMS, &page));
    let found = page.or_else(|| find(&path, form));
    ready(found.unwrap_or_else(|| Problem::new(ProblemCode::RouteNotFound, "there is no such code").into_response()))
}

/// Makes a page from the code's row in the table.
fn run_error_page(code: &str) -> Option<String> {
    let mut rows = guide(RUN_ERRORS)?.lines();
    let row = rows.find(|line| {
        let rest = line.strip_prefix("| `").and_then(|rest| rest.strip_prefix(code));
        rest.is_some_and(|rest| rest.starts_with("` |"))
    })?;
    // The sections are on the page of all errors.
    let row = row.replace("](#", "](run-errors.md#");
    Some(format!(
        "# {code}\n\nA run ended with this error: it is the `error` of its record; see [errors of runs](run-errors.md).\n\n\
         | code | phase | what it means | what to do |\n|---|---|---|---|\n{row}\n"
    ))
}

/// Responds with a page. Each page is rendered once and shared by all responses.
fn respond(form: Form, path: &str, folder: &str, markdown: &str) -> Response {
    static PAGES: LazyLock<Mutex<HashMap<(Form, String), Bytes>>> = LazyLock::new(Mutex::default);
    // Each change is a single call, so the map stays valid after a panic.
    let mut pages = PAGES.lock();
    let page = pages.entry((form, path.to_owned())).or_insert_with(|| match form {
        Form::Markdown => to_markdown(folder, markdown).into(),
        Form::Html => to_html(folder, markdown).into(),
    });
    let text = page.clone();
    let kind = match form {
        Form::Markdown => "text/markdown; charset=utf-8",
        Form::Html => "text/html; charset=utf-8",
    };
    ([(header::CONTENT_TYPE, kind), (header::VARY, "accept")], text).into_response()
}

/// Returns a page of the folder as Markdown. Links to other pages get their whole path, and a link
/// to a file that is not served is replaced by its text.
fn to_markdown(folder: &str, markdown: &str) -> String {
    let mut page = String::with_capacity(markdown.len());
    let mut copied = 0;
    for (event, range) in Parser::new_ext(markdown, Options::ENABLE_TABLES).into_offset_iter() {
        let Event::Start(Tag::Link { dest_url, .. }) = event else {
            continue;
        };
        let words = markdown[range.clone()].strip_prefix('[');
        let Some((words, _)) = words.and_then(|link| link.rsplit_once("](")) else {
            continue;
        };
        page.push_str(&markdown[copied..range.start]);
        copied = range.end;
        // Writing to a string can't fail.
        let _ = match served(folder, &dest_url) {
            Some(address) => write!(page, "[{words}]({address})"),
            None => write!(page, "{words}"),
        };
    }
    page.push_str(&markdown[copied..]);
    page
}

/// Renders a page of the folder as HTML, with the same links. Headings get the anchors that links
/// in the guides use.
fn to_html(folder: &str, markdown: &str) -> String {
    let mut events = Vec::new();
    let mut heading = None;
    let mut is_plain = false;
    for mut event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match &mut event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                if let Some(address) = served(folder, dest_url) {
                    *dest_url = address.into();
                } else {
                    is_plain = true;
                    continue;
                }
            }
            Event::End(TagEnd::Link) if mem::take(&mut is_plain) => continue,
            Event::Start(Tag::Heading { .. }) => heading = Some((events.len(), String::new())),
            Event::Text(text) | Event::Code(text) => {
                if let Some((_, words)) = &mut heading {
                    words.push_str(text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some((start, words)) = heading.take()
                    && let Some(Event::Start(Tag::Heading { id, .. })) = events.get_mut(start)
                {
                    *id = Some(anchor(&words).into());
                }
            }
            _ => (),
        }
        events.push(event);
    }
    let mut page = HEAD.to_owned();
    html::push_html(&mut page, events.into_iter());
    page.push_str(TAIL);
    page
}

/// Returns the address of a link of a page in the folder; `None` if it leads to no page. The
/// address does not depend on the path under which the page was read: one page has several.
fn served(folder: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with(['#', '/']) {
        return Some(link.to_owned());
    }
    let (file, anchor) = link.split_at(link.find('#').unwrap_or(link.len()));
    let path = match file.strip_prefix("../") {
        Some(rest) if !folder.is_empty() => rest.to_owned(),
        _ => format!("{folder}{file}"),
    };
    let code = path.strip_prefix(PROBLEMS).and_then(|page| page.strip_suffix(".md"));
    let is_known = guide(&path).is_some() || code.is_some_and(|code| ProblemCode::find(code).is_some());
    is_known.then(|| format!("/docs/{path}{anchor}"))
}

/// Makes the anchor of a heading as Markdown sites do: in lower case, with dashes for spaces and
/// without punctuation.
fn anchor(words: &str) -> String {
    let retained = words.to_lowercase();
    retained
        .chars()
        .filter_map(|sign| match sign {
            ' ' => Some('-'),
            _ => (sign.is_alphanumeric() || sign == '-' || sign == '_').then_some(sign),
        })
        .collect()
}
