//! The guides: the original Markdown or, for browsers, HTML without scripts.

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
use axum::response::{IntoResponse as _, Response};
use parking_lot::Mutex;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

macro_rules! guides {
    ($($name:literal)+) => {
        /// The guides by their names, which lead to them below `/docs/` as in the folder `docs`. So
        /// links between guides work as they are written.
        const GUIDES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../docs/", $name)))),+];
    };
}

guides! {
    "agents.md" "api.md" "approvals.md" "benchmarks.md" "budgets.md" "commands.md" "compaction.md" "configuration.md"
    "console.md" "deployment.md" "environments.md" "events.md" "files.md" "guarantees.md" "hooks.md" "http-tools.md"
    "mcp.md" "mcp-server.md" "models.md" "openai.md" "operations.md" "problems.md" "sandbox.md" "sandbox-network.md"
    "scaling.md" "sessions.md" "subagents.md" "threads.md" "tools.md" "webhook-hook.md" "webhooks.md"
}

/// The file of all settings, as guides link it. The link also leads to the route of the file.
const SETTINGS: &str = "../config/default.toml";

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

/// Responds with the file of all settings.
pub(super) fn settings() -> Ready<Response> {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    ready((kind, include_str!("../../config/default.toml")).into_response())
}

/// Lists the guides.
pub(super) fn index(form: Form) -> Ready<Response> {
    let mut list = "# Guides\n\n[Requests](/docs/) can be tried out where scripts are allowed.\n\n".to_owned();
    for (name, text) in GUIDES {
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(name);
        // Writing to a string can't fail.
        let _ = writeln!(list, "- [{title}](/docs/{name})");
    }
    ready(respond(form, "index", &list))
}

/// Responds with the guide of the name, with or without `.md`; `None` if there is no such guide.
pub(super) fn find(name: &str, form: Form) -> Option<Response> {
    let name = name.strip_suffix(".md").unwrap_or(name);
    let text = guide(&format!("{name}.md"))?;
    Some(respond(form, name, text))
}

fn guide(name: &str) -> Option<&'static str> {
    let guide = GUIDES.iter().find(|(known, _)| *known == name);
    guide.map(|(_, text)| *text)
}

/// Responds with a page. Each page is rendered once and shared by all responses.
fn respond(form: Form, name: &str, markdown: &str) -> Response {
    static PAGES: LazyLock<Mutex<HashMap<(Form, String), Bytes>>> = LazyLock::new(Mutex::default);
    // Each change is a single call, so the map stays valid after a panic.
    let mut pages = PAGES.lock();
    let page = pages.entry((form, name.to_owned())).or_insert_with(|| match form {
        Form::Markdown => markdown.to_owned().into(),
        Form::Html => to_html(markdown).into(),
    });
    let text = page.clone();
    let kind = match form {
        Form::Markdown => "text/markdown; charset=utf-8",
        Form::Html => "text/html; charset=utf-8",
    };
    ([(header::CONTENT_TYPE, kind), (header::VARY, "accept")], text).into_response()
}

/// Renders a page as HTML. Headings get the anchors that links in the guides use. A link to a file
/// that is not served is replaced by its text.
fn to_html(markdown: &str) -> String {
    let mut events = Vec::new();
    let mut heading = None;
    let mut is_plain = false;
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match &event {
            Event::Start(Tag::Link { dest_url, .. }) if !is_served(dest_url) => {
                is_plain = true;
                continue;
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

/// Returns whether the service serves the target of a link.
fn is_served(link: &str) -> bool {
    let file = link.split('#').next().unwrap_or_default();
    link.contains("://") || link.starts_with(['#', '/']) || link == SETTINGS || guide(file).is_some()
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
