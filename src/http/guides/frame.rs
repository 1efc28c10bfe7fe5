//! The HTML around a guide: the bar at the top, the groups of guides, and the headings of the page.
//!
//! Narrow windows show the groups and the headings as popovers, which need no script.

use std::fmt::Write as _;

use pulldown_cmark::HeadingLevel;

use super::page::{Heading, Page, escaped};
use super::table::GROUPS;

/// The mark of the console.
const MARK: &str = "<span class=\"mark\"><svg class=\"icon\" viewBox=\"0 0 16 16\" width=\"16\" height=\"16\" \
    aria-hidden=\"true\"><path d=\"M5 3v10M5 7c0 3 6 1 6 5M11 12v1\"/></svg></span>";
/// The page of the requests, which stands after the guides.
const REQUESTS: &str = "<ul aria-label=\"Also\"><li><a href=\"/docs/\">Requests of the API</a></li></ul>\n";

/// Puts the frame around a page. The list of all guides has no `file`.
pub(super) fn framed(title: &str, file: Option<&str>, page: &Page) -> String {
    let title = escaped(title);
    let guides = guides(file);
    let contents = contents(&page.headings);
    let button = if contents.is_empty() {
        ""
    } else {
        "<button type=\"button\" class=\"of-contents\" popovertarget=\"page-contents\">On this page</button>"
    };
    let body = &page.body;
    format!(
        r##"<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · agent-runtime</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/assets/app.css">
<link rel="stylesheet" href="/docs/assets/guides.css">
<script type="module" src="/docs/assets/guides.js"></script>
</head><body class="docs">
<a class="skip" href="#page-main">Skip to content</a>
<header class="top"><a class="brand" href="/docs/guides">{MARK}agent-runtime</a>
<button type="button" class="of-guides" popovertarget="page-guides">Guides</button>{button}
<span class="grow"></span></header>
<nav id="page-guides" class="side" popover aria-label="Guides">{guides}</nav>
{contents}<main id="page-main" tabindex="-1"><article>
{body}</article></main>
</body></html>
"##
    )
}

/// Lists all guides in their groups, and the page where requests can be tried out.
fn guides(current: Option<&str>) -> String {
    let mut list = String::new();
    for (index, group) in GROUPS.iter().enumerate() {
        let (name, id) = (group.name, format!("page-group-{index}"));
        // Writing to a string can't fail.
        let _ = write!(list, "<p id=\"{id}\">{name}</p>\n<ul aria-labelledby=\"{id}\">");
        for guide in group.guides {
            let (file, title) = (guide.file, escaped(guide.title()));
            let is_current = current == Some(file);
            let mark = if is_current { " aria-current=\"page\"" } else { "" };
            let _ = writeln!(list, "<li><a href=\"/docs/{file}\"{mark}>{title}</a></li>");
        }
        list.push_str("</ul>\n");
    }
    list.push_str(REQUESTS);
    list
}

/// Lists the headings of a page; empty without headings.
fn contents(headings: &[Heading]) -> String {
    if headings.is_empty() {
        return String::new();
    }
    let mut list = String::new();
    for heading in headings {
        let (anchor, title) = (&heading.anchor, escaped(&heading.title));
        let is_deeper = heading.level > HeadingLevel::H2;
        let class = if is_deeper { " class=\"deeper\"" } else { "" };
        let _ = writeln!(list, "<li{class}><a href=\"#{anchor}\">{title}</a></li>");
    }
    format!(
        "<nav id=\"page-contents\" class=\"contents\" popover aria-label=\"On this page\"><p>On this page</p>\n\
         <ul>{list}</ul></nav>\n"
    )
}
