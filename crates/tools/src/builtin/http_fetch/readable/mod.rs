//! Turns HTML into text that a model can read: lines, headings, lists and links. No IO.
//!
//! This is no parser of documents. It reads each byte once and never recurses, so a hostile page
//! costs no more than its length.

mod entities;
mod lines;

use url::Url;

use self::entities::decoded;
use self::lines::Lines;

/// Elements whose content is not text.
const SKIPPED: [&str; 8] = [
    "script", "style", "template", "svg", "math", "iframe", "object", "canvas",
];
/// The longest address of a link that is written.
const MAX_LINK: usize = 500;
/// The most links of a page that are written with their addresses. A short link can have a long
/// address.
const MAX_LINKS: usize = 2_000;
/// The most lists within each other whose numbers are known.
const MAX_LISTS: usize = 64;

/// Returns the readable text of a page. Links are relative to its address.
pub(super) fn readable(html: &str, address: &str) -> String {
    let mut reader = Reader {
        rest: html,
        lines: Lines::default(),
        link: None,
        links_left: MAX_LINKS,
        base: Url::parse(address).ok(),
        has_base: false,
        lists: Vec::new(),
    };
    reader.read();
    reader.lines.finish()
}

struct Reader<'h> {
    rest: &'h str,
    lines: Lines,
    /// The address of the link that is open.
    link: Option<String>,
    links_left: usize,
    base: Option<Url>,
    has_base: bool,
    /// The open lists, with the number of the next item of one that is ordered.
    lists: Vec<Option<i32>>,
}

/// A tag such as `<a href="x">` or `</p>`.
struct Tag<'h> {
    name: String,
    is_end: bool,
    attributes: &'h str,
}

impl<'h> Reader<'h> {
    fn read(&mut self) {
        while let Some(at) = self.rest.find('<') {
            let (text, markup) = self.rest.split_at(at);
            self.lines.text(&decoded(text));
            self.rest = markup;
            self.markup();
        }
        self.lines.text(&decoded(self.rest));
        self.end_link();
    }

    /// Reads what begins with `<`.
    fn markup(&mut self) {
        let after = &self.rest[1..];
        if after.starts_with("!--") {
            self.skip_past("-->");
        } else if after.starts_with(['!', '?']) {
            self.skip_past(">");
        } else if after.starts_with('/') || after.starts_with(|c: char| c.is_ascii_alphabetic()) {
            if let Some(tag) = self.tag() {
                self.element(&tag);
            }
        } else {
            self.lines.text("<");
            self.rest = after;
        }
    }

    /// Skips to the end of the first match, or of the page.
    fn skip_past(&mut self, end: &str) {
        let found = self.rest.find(end).map(|at| at + end.len());
        self.rest = &self.rest[found.unwrap_or(self.rest.len())..];
    }

    /// Reads a tag. A tag without an end is the end of the page.
    fn tag(&mut self) -> Option<Tag<'h>> {
        let is_end = self.rest[1..].starts_with('/');
        let start = if is_end { 2 } else { 1 };
        let text = &self.rest[start..];
        let name_end = text.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'));
        let name_end = name_end.unwrap_or(text.len());
        let name = text[..name_end].to_ascii_lowercase();
        let mut quote = None;
        let end = text.bytes().skip(name_end).position(|byte| match quote {
            Some(open) => {
                if byte == open {
                    quote = None;
                }
                false
            }
            None if matches!(byte, b'"' | b'\'') => {
                quote = Some(byte);
                false
            }
            None => byte == b'>',
        });
        let Some(end) = end.map(|end| name_end + end) else {
            self.rest = "";
            return None;
        };
        self.rest = &text[end + 1..];
        Some(Tag {
            name,
            is_end,
            attributes: &text[name_end..end],
        })
    }

    fn element(&mut self, tag: &Tag<'h>) {
        let name = tag.name.as_str();
        if !tag.is_end && SKIPPED.contains(&name) && !tag.attributes.ends_with('/') {
            self.skip_element(name);
            return;
        }
        match name {
            "li" if !tag.is_end => self.begin_item(tag.attributes),
            "ul" | "ol" => {
                self.lines.end_paragraph();
                self.list(tag);
            }
            "base" => self.set_base(tag.attributes),
            "td" | "th" if !tag.is_end => self.lines.cell(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if !tag.is_end => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.lines.end_paragraph();
                self.lines.begin_with(&format!("{} ", "#".repeat(level)));
            }
            "pre" => {
                self.lines.end_paragraph();
                self.lines.set_verbatim(!tag.is_end);
            }
            "a" => {
                self.end_link();
                if !tag.is_end {
                    self.begin_link(tag.attributes);
                }
            }
            "img" => {
                let text = attribute(tag.attributes, "alt").unwrap_or_default();
                if !text.is_empty() {
                    self.lines.text(&format!("[image: {text}]"));
                }
            }
            "title" | "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "table" | "blockquote" | "hr" | "section"
            | "article" | "header" | "footer" | "nav" | "main" | "aside" | "form" | "figure" | "dl" => {
                self.lines.end_paragraph();
            }
            "br" | "div" | "li" | "tr" | "dt" | "dd" | "option" | "body" | "figcaption" | "summary" | "details"
            | "address" | "fieldset" | "legend" | "caption" => self.lines.end_line(),
            _ => (),
        }
    }

    /// Begins or ends a list.
    fn list(&mut self, tag: &Tag<'h>) {
        if tag.is_end {
            self.lists.pop();
        } else if self.lists.len() < MAX_LISTS {
            let first = || number(tag.attributes, "start").unwrap_or(1);
            self.lists.push((tag.name == "ol").then(first));
        }
    }

    fn begin_item(&mut self, attributes: &str) {
        let Some(Some(next)) = self.lists.last_mut() else {
            return self.lines.begin_with("- ");
        };
        let number = number(attributes, "value").unwrap_or(*next);
        *next = number.saturating_add(1);
        self.lines.begin_with(&format!("{number}. "));
    }

    /// Resolves later links by the first `<base>` of the page.
    fn set_base(&mut self, attributes: &str) {
        let address = attribute(attributes, "href").filter(|_| !self.has_base);
        if let Some(address) = address {
            let resolved = self.base.as_ref().and_then(|base| base.join(address.trim()).ok());
            self.has_base = true;
            self.base = resolved.or_else(|| self.base.take());
        }
    }

    fn skip_element(&mut self, name: &str) {
        let end = find_end(self.rest, name).unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
        // What remains begins with the end tag, if there is one.
        self.skip_past(">");
    }

    fn begin_link(&mut self, attributes: &str) {
        let Some(left) = self.links_left.checked_sub(1) else {
            return;
        };
        self.links_left = left;
        let Some(address) = attribute(attributes, "href") else {
            return;
        };
        let address = address.trim();
        let resolved = self.base.as_ref().and_then(|base| base.join(address).ok());
        let address = resolved.filter(|url| matches!(url.scheme(), "http" | "https" | "mailto"));
        let Some(address) = address.map(String::from).filter(|address| address.len() <= MAX_LINK) else {
            return;
        };
        if !attribute(attributes, "href").is_some_and(|address| address.trim_start().starts_with('#')) {
            self.lines.text("[");
            self.link = Some(address);
        }
    }

    fn end_link(&mut self) {
        if let Some(address) = self.link.take() {
            self.lines.end_link(&address);
        }
    }
}

/// Finds the end tag of an element.
fn find_end(html: &str, name: &str) -> Option<usize> {
    find_tag(html, &format!("</{name}"))
}

/// Finds the beginning of a tag in any case, with the whole name.
fn find_tag(html: &str, begin: &str) -> Option<usize> {
    let mut tags = html.match_indices('<').map(|(at, _)| at);
    tags.find(|at| {
        let rest = &html.as_bytes()[*at..];
        let is_same = rest
            .get(..begin.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(begin.as_bytes()));
        is_same && rest.get(begin.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric())
    })
}

/// Returns the number in an attribute.
fn number(attributes: &str, name: &str) -> Option<i32> {
    attribute(attributes, name)?.trim().parse().ok()
}

/// Finds the value of an attribute.
fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        let end = rest
            .find(|c: char| c.is_ascii_whitespace() || c == '=')
            .unwrap_or(rest.len());
        if rest.is_empty() {
            return None;
        }
        let (found, after) = rest.split_at(end);
        let after = after.trim_start();
        let Some(value) = after.strip_prefix('=').map(str::trim_start) else {
            rest = after;
            continue;
        };
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, remaining) = match quote {
            Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            None => value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
        };
        if found.eq_ignore_ascii_case(name) {
            return Some(decoded(value).into_owned());
        }
        rest = remaining;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(html: &str) -> String {
        readable(html, "https://example.org/dir/page?x=1")
    }

    #[test]
    fn a_page_becomes_lines() {
        let html = "<!DOCTYPE html><html><head><title>The &amp; title</title>\
            <style>p { color: red }</style><script>if (a < b) alert('</p>')</script></head>\
            <body><h1>Head</h1><p>One\n   two <b>three</b>.</p><!-- <p>not --><p>Next<br>line</p>\
            <ul><li>first</li><li>second</ul>\
            <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>\
            <pre>  x\n    y</pre><SCRIPT>no</SCRIPT>end</body></html>";
        let expected = "The & title\n\n# Head\n\nOne two three.\n\nNext\nline\n\n- first\n- second\n\n\
            a | b\n1 | 2\n\n  x\n    y\n\nend";
        assert_eq!(read(html), expected);
    }

    #[test]
    fn links_and_images_are_written() {
        for (html, expected) in [
            (
                "see <a href='other?a=1&amp;b=2'>this</a>.",
                "see [this](https://example.org/dir/other?a=1&b=2).",
            ),
            ("<a class=x href=/up>up</a>", "[up](https://example.org/up)"),
            (
                "<a href=\"https://a.test/\">a<a href=\"https://b.test/\">b",
                "[a](https://a.test/)[b](https://b.test/)",
            ),
            ("<a href='#top'>top</a>", "top"),
            ("<a href='javascript:alert(1)'>run</a>", "run"),
            ("<a name=x>plain</a>", "plain"),
            ("<a href='/a'></a>", "[](https://example.org/a)"),
            (
                "<base target=x><base href='/base/'><base href='/late/'><a href=rel.html>a</a>",
                "[a](https://example.org/base/rel.html)",
            ),
            (
                "<base href='https://b.test/x/y'><a href='../up'>a</a>",
                "[a](https://b.test/up)",
            ),
            ("<img src=a.png alt='A &lt;cat&gt;'><img src=b.png>", "[image: A <cat>]"),
        ] {
            assert_eq!(read(html), expected, "{html}");
        }
    }

    #[test]
    fn ordered_lists_have_their_numbers() {
        for (html, expected) in [
            ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
            ("<ol start=3><li>a<li value=7>b<li>c</ol>", "3. a\n7. b\n8. c"),
            (
                "<ol><li>a<ul><li>x<li>y</ul><li>b<ol><li>z</ol><li>c</ol><li>d",
                "1. a\n\n- x\n- y\n\n2. b\n\n1. z\n\n3. c\n\n- d",
            ),
            ("</ol><li>a<ol start=x><li>b", "- a\n\n1. b"),
        ] {
            assert_eq!(read(html), expected, "{html}");
        }
    }

    #[test]
    fn broken_markup_is_read_as_far_as_possible() {
        for (html, expected) in [
            ("", ""),
            ("a < b and c > d", "a < b and c > d"),
            ("a<", "a<"),
            ("a <p unclosed", "a"),
            ("a <p title=\"> b\">c", "a\n\nc"),
            ("a <p title=\"never closed> b", "a"),
            ("a <!-- never closed", "a"),
            ("a <script>never closed", "a"),
            ("a <svg/>b", "a b"),
            ("<head><title>no end</title><p>b", "no end\n\nb"),
            ("</nothing>a</p></p></p>b", "a\n\nb"),
            ("<scripty>a</scripty>", "a"),
            ("<p>é<p>€", "é\n\n€"),
            ("&lt;p&gt; &#65;&#x42; &nbsp; &unknown; &amp &", "<p> AB &unknown; & &"),
        ] {
            assert_eq!(read(html), expected, "{html}");
        }
    }

    #[test]
    fn a_hostile_page_costs_its_length() {
        let large = 200_000;
        for part in [
            "<",
            "<!--",
            "<a ",
            "<a href=\"",
            "</",
            "<script>",
            "&",
            "&#",
            "<p>",
            "<pre>",
            "<head>",
            "<td>",
            "<a href=x>",
            "<ol>",
        ] {
            let html = part.repeat(large);
            let begun = std::time::Instant::now();
            let text = read(&html);
            assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{part}");
            assert!(text.len() <= html.len() + MAX_LINKS * (MAX_LINK + 4), "{part}");
        }
    }
}
