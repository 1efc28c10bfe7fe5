//! Renders the Markdown of a guide as HTML without inline scripts and styles.
//!
//! Headings get the anchors that links in the guides use. A link to a file that is not served is
//! replaced by its text. Tables and code scroll in boxes of their own, which the keyboard reaches.

use std::mem;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use serde::Serialize;

use super::table;

/// The file of all settings, as guides link it. The link also leads to the route of the file.
const SETTINGS: &str = "../config/default.toml";

/// Where the service of the examples is. The links lead to the service that shows the guide.
const EXAMPLE: &str = "http://127.0.0.1:8080";

const HEADING: &str = "<div class=\"heading\">";
const HEADING_END: &str = "</div>\n";
const TABLE: &str = "<div class=\"scrolls\" role=\"group\" aria-label=\"Table\" tabindex=\"0\">";
const TABLE_END: &str = "</div>\n";
const CODE: &str =
    "<div class=\"codebox\"><pre class=\"code\" role=\"group\" aria-label=\"Code\" tabindex=\"0\"><code>";
const CODE_END: &str = "</code></pre></div>\n";
const PICTURE: &str = "<span class=\"note\">";
const PICTURE_END: &str = "</span>";

/// The HTML of a guide, without what is around it.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) body: String,
    /// All headings but the title.
    pub(super) headings: Vec<Heading>,
}

/// A heading of a guide.
#[derive(Debug, Serialize)]
pub(super) struct Heading {
    #[serde(skip)]
    pub(super) level: HeadingLevel,
    /// Its words, without markup.
    pub(super) title: String,
    /// Its id in the page.
    pub(super) anchor: String,
}

/// Renders a guide.
pub(super) fn render(markdown: &str) -> Page {
    let mut renderer = Renderer::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        renderer.take(event);
    }
    let mut body = String::new();
    html::push_html(&mut body, renderer.events.into_iter());
    Page {
        body,
        headings: renderer.headings,
    }
}

/// Returns a text as HTML shows it, also between quotation marks.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// The parts of a page so far.
#[derive(Debug, Default)]
struct Renderer<'m> {
    events: Vec<Event<'m>>,
    headings: Vec<Heading>,
    /// The position of the open heading, and its words so far.
    heading: Option<(usize, String)>,
    /// Whether the open link is replaced by its text.
    is_plain: bool,
    /// The address of the open picture.
    picture: Option<CowStr<'m>>,
}

impl<'m> Renderer<'m> {
    fn take(&mut self, event: Event<'m>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(end) => self.close(end),
            other => {
                if let (Event::Text(words) | Event::Code(words), Some((_, title))) = (&other, &mut self.heading) {
                    title.push_str(words);
                }
                self.events.push(other);
            }
        }
    }

    fn open(&mut self, tag: Tag<'m>) {
        match tag {
            Tag::Heading { .. } => {
                self.push_html(HEADING);
                self.heading = Some((self.events.len(), String::new()));
                self.events.push(Event::Start(tag));
            }
            // Alignments would be inline styles.
            Tag::Table(_) => {
                self.push_html(TABLE);
                self.events.push(Event::Start(Tag::Table(Vec::new())));
            }
            Tag::CodeBlock(_) => self.push_html(CODE),
            Tag::Link { ref dest_url, .. } if !is_served(dest_url) => self.is_plain = true,
            // The program has no pictures: they would make it larger by a megabyte.
            Tag::Image { dest_url, .. } => {
                self.push_html(PICTURE);
                self.events.push(Event::Text("Picture in the repository: ".into()));
                self.picture = Some(dest_url);
            }
            mut tag => {
                if let Tag::Link { dest_url, .. } = &mut tag
                    && let Some(path) = dest_url.strip_prefix(EXAMPLE)
                {
                    *dest_url = path.to_owned().into();
                }
                self.events.push(Event::Start(tag));
            }
        }
    }

    fn close(&mut self, end: TagEnd) {
        match end {
            TagEnd::Heading(level) => {
                self.events.push(Event::End(end));
                self.close_heading(level);
            }
            TagEnd::Table => {
                self.events.push(Event::End(end));
                self.push_html(TABLE_END);
            }
            // A header without words is no header.
            TagEnd::TableCell if matches!(self.events.last(), Some(Event::Start(Tag::TableCell))) => {
                self.events.pop();
                self.push_html("<td></td>");
            }
            TagEnd::CodeBlock => self.push_html(CODE_END),
            TagEnd::Link if mem::take(&mut self.is_plain) => (),
            TagEnd::Image => {
                let address = self.picture.take().unwrap_or_else(|| "".into());
                self.events.push(Event::Text(", ".into()));
                self.events.push(Event::Code(format!("docs/{address}").into()));
                self.push_html(PICTURE_END);
            }
            end => self.events.push(Event::End(end)),
        }
    }

    /// Gives a heading its anchor. All but the title also get a link to it.
    fn close_heading(&mut self, level: HeadingLevel) {
        let Some((start, title)) = self.heading.take() else {
            return;
        };
        let anchor = anchor(&title);
        if let Some(Event::Start(Tag::Heading { id, .. })) = self.events.get_mut(start) {
            *id = Some(anchor.clone().into());
        }
        if level != HeadingLevel::H1 {
            let words = escaped(&title);
            let link = format!("<a class=\"anchor\" href=\"#{anchor}\" aria-label=\"Link to {words}\">#</a>");
            self.events.push(Event::Html(link.into()));
            self.headings.push(Heading { level, title, anchor });
        }
        self.push_html(HEADING_END);
    }

    fn push_html(&mut self, html: &'static str) {
        self.events.push(Event::Html(html.into()));
    }
}

/// Returns whether the service serves the target of a link.
fn is_served(link: &str) -> bool {
    let file = link.split('#').next().unwrap_or_default();
    let is_guide = || table::all().any(|guide| guide.file == file);
    link.contains("://") || link.starts_with(['#', '/']) || link == SETTINGS || is_guide()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_anchors_boxes_and_no_inline_style() {
        let markdown = "# Title\n\n## `a_b`, \"c\" & *d*\n\n[x](agents.md#y) [lost](../src/main.rs) <http://127.0.0.1:8080/console>\n\n\
            ![The inbox](console/inbox-light.png)\n\n| | n |\n|---|--:|\n| a | |\n\n```sh\ncurl <a>\n```\n";
        let page = render(markdown);
        let headings: Vec<_> = page
            .headings
            .iter()
            .map(|one| (one.title.as_str(), one.anchor.as_str()))
            .collect();
        assert_eq!(headings, [("a_b, \"c\" & d", "a_b-c--d")]);
        let expected = "<div class=\"heading\">\n<h1 id=\"title\">Title</h1>\n</div>\n\
            <div class=\"heading\">\n<h2 id=\"a_b-c--d\"><code>a_b</code>, \"c\" &amp; <em>d</em></h2>\n\
            <a class=\"anchor\" href=\"#a_b-c--d\" aria-label=\"Link to a_b, &quot;c&quot; &amp; d\">#</a></div>\n\
            <p><a href=\"agents.md#y\">x</a> lost <a href=\"/console\">http://127.0.0.1:8080/console</a></p>\n\
            <p><span class=\"note\">Picture in the repository: The inbox, <code>docs/console/inbox-light.png</code>\
            </span></p>\n\
            <div class=\"scrolls\" role=\"group\" aria-label=\"Table\" tabindex=\"0\"><table><thead><tr><td></td>\
            <th>n</th></tr></thead><tbody>\n<tr><td>a</td><td></td></tr>\n</tbody></table>\n</div>\n\
            <div class=\"codebox\"><pre class=\"code\" role=\"group\" aria-label=\"Code\" tabindex=\"0\"><code>\
            curl &lt;a&gt;\n</code></pre></div>\n";
        assert_eq!(page.body, expected);
    }
}
