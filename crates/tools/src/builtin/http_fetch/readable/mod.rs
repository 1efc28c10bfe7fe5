//! Turns HTML into text that a model can read: lines, headings, lists and links. No IO.
//!
//! This makes no tree of the page. The tokenizer reads each byte once, and nothing recurses. So a
//! hostile page costs no more than its length.

mod lines;
mod parts;

use html5gum::emitters::callback::CallbackEmitter;
use html5gum::{State, Tokenizer};
use url::Url;

use self::lines::Lines;
use self::parts::{Part, Parts, Tag};

/// Elements whose content is not text.
const SKIPPED: [&str; 8] = [
    "script", "style", "template", "svg", "math", "iframe", "object", "canvas",
];
/// The longest address of a link that is written, and of a `<base>`.
const MAX_LINK: usize = 500;
/// The most links of a page that are written with their addresses. A short link can have a long
/// address.
const MAX_LINKS: usize = 2_000;

/// Returns the readable text of a page. Links are relative to its address.
pub(super) fn readable(html: &str, address: &str) -> String {
    let mut reader = Reader {
        lines: Lines::default(),
        skipped: None,
        link: None,
        links_left: MAX_LINKS,
        base: Url::parse(address).ok(),
        has_base: false,
        lists: Vec::new(),
    };
    let emitter = CallbackEmitter::<Parts, Part, ()>::new(Parts::default());
    let mut tokenizer = Tokenizer::new_with_emitter(html, emitter);
    while let Some(Ok(part)) = tokenizer.next() {
        match part {
            Part::Text(text) => reader.text(&text),
            Part::Begin(tag) => {
                if let Some(state) = reader.begin(&tag) {
                    tokenizer.set_state(state);
                }
            }
            Part::End(name) => reader.end(&name),
        }
    }
    reader.end_link();
    reader.lines.finish()
}

struct Reader {
    lines: Lines,
    /// The open element whose content is not text.
    skipped: Option<&'static str>,
    /// The address of the link that is open.
    link: Option<String>,
    links_left: usize,
    base: Option<Url>,
    has_base: bool,
    /// The open lists. An ordered one has the number of its next item.
    lists: Vec<Option<i32>>,
}

impl Reader {
    fn text(&mut self, text: &str) {
        if self.skipped.is_none() {
            self.lines.text(text);
        }
    }

    /// Begins an element. Returns the next state of the tokenizer if the content has no tags.
    fn begin(&mut self, tag: &Tag) -> Option<State> {
        // Within `svg` and `math`, all content has tags, and an element may end in its own tag.
        let is_foreign = matches!(self.skipped, Some("svg" | "math"));
        if self.skipped.is_none() {
            match SKIPPED.into_iter().find(|name| *name == tag.name) {
                None => self.begin_element(tag),
                Some(_) if tag.is_self_closing => (),
                skipped => self.skipped = skipped,
            }
        }
        state_within(&tag.name).filter(|_| !is_foreign && !tag.is_self_closing)
    }

    fn end(&mut self, name: &str) {
        match self.skipped {
            None => self.end_element(name),
            Some(skipped) if skipped == name => self.skipped = None,
            Some(_) => (),
        }
    }

    fn begin_element(&mut self, tag: &Tag) {
        match tag.name.as_str() {
            "li" => self.begin_item(tag),
            name @ ("ul" | "ol") => {
                self.lines.end_paragraph();
                let first = || tag.number("start").unwrap_or(1);
                self.lists.push((name == "ol").then(first));
            }
            "base" => self.set_base(tag),
            "td" | "th" => self.lines.cell(),
            name @ ("h1" | "h2" | "h3" | "h4" | "h5" | "h6") => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.lines.end_paragraph();
                self.lines.begin_with(&format!("{} ", "#".repeat(level)));
            }
            "pre" => {
                self.lines.end_paragraph();
                self.lines.set_verbatim(true);
            }
            "a" => {
                self.end_link();
                self.begin_link(tag);
            }
            "img" => {
                if let Some(text) = tag.attribute("alt").filter(|text| !text.is_empty()) {
                    self.lines.text(&format!("[image: {text}]"));
                }
            }
            name => self.separate(name),
        }
    }

    fn end_element(&mut self, name: &str) {
        match name {
            "ul" | "ol" => {
                self.lines.end_paragraph();
                self.lists.pop();
            }
            "pre" => {
                self.lines.end_paragraph();
                self.lines.set_verbatim(false);
            }
            "a" => self.end_link(),
            name => self.separate(name),
        }
    }

    /// Ends the paragraph or the line at a tag of an element that stands alone.
    fn separate(&mut self, name: &str) {
        match name {
            "title" | "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "table" | "blockquote" | "hr" | "section"
            | "article" | "header" | "footer" | "nav" | "main" | "aside" | "form" | "figure" | "dl" => {
                self.lines.end_paragraph();
            }
            "br" | "div" | "li" | "tr" | "dt" | "dd" | "option" | "body" | "figcaption" | "summary" | "details"
            | "address" | "fieldset" | "legend" | "caption" => self.lines.end_line(),
            _ => (),
        }
    }

    fn begin_item(&mut self, tag: &Tag) {
        let Some(Some(next)) = self.lists.last_mut() else {
            return self.lines.begin_with("- ");
        };
        let number = tag.number("value").unwrap_or(*next);
        *next = number.saturating_add(1);
        self.lines.begin_with(&format!("{number}. "));
    }

    /// Resolves later links by the first `<base>` of the page.
    fn set_base(&mut self, tag: &Tag) {
        let Some(address) = tag.attribute("href").filter(|_| !self.has_base) else {
            return;
        };
        self.has_base = true;
        // A long base would make each link expensive.
        if address.len() <= MAX_LINK {
            self.base = self.resolved(address).or_else(|| self.base.take());
        }
    }

    fn begin_link(&mut self, tag: &Tag) {
        let href = tag.attribute("href").map(str::trim).filter(|_| self.links_left > 0);
        let Some(href) = href.filter(|href| !href.starts_with('#')) else {
            return;
        };
        self.links_left -= 1;
        let url = self.resolved(href);
        let url =
            url.filter(|url| matches!(url.scheme(), "http" | "https" | "mailto") && url.as_str().len() <= MAX_LINK);
        if let Some(url) = url {
            self.lines.text("[");
            self.link = Some(url.into());
        }
    }

    fn resolved(&self, address: &str) -> Option<Url> {
        self.base.as_ref()?.join(address.trim()).ok()
    }

    fn end_link(&mut self) {
        if let Some(address) = self.link.take() {
            self.lines.end_link(&address);
        }
    }
}

/// Returns the state in which the tokenizer reads an element whose content has no tags.
fn state_within(name: &str) -> Option<State> {
    match name {
        "script" => Some(State::ScriptData),
        "style" | "iframe" => Some(State::RawText),
        "title" | "textarea" => Some(State::RcData),
        _ => None,
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
            (
                "&Eacute;&#150;&#0;&#x110000;&notit;",
                "\u{c9}\u{2013}\u{fffd}\u{fffd}\u{ac}it;",
            ),
            ("a <p title=b\"c>d", "a\n\nd"),
            ("<a href='/a' HREF='/b'>c</a href='/d'>", "[c](https://example.org/a)"),
            (
                "<a href='?a=1&copy=2'>c</a>",
                "[c](https://example.org/dir/page?a=1&copy=2)",
            ),
            ("<svg><title/><style/><script/></svg>a", "a"),
            ("<template><script>'<!--'</script></template>a", "a"),
            ("<textarea><b>a</textarea><noscript><b>c</b></noscript>", "<b>ac"),
            ("<script><!-- </script> a", "a"),
            ("<script src=a.js/>a</script>b<script/>c", "bc"),
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
            "<a b='",
            "<a href=x b",
            "</script",
            "<!DOCTYPE",
            "<div>",
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

    #[test]
    fn a_long_base_is_not_used() {
        let html = format!(
            "<base href='/{}/'>{}",
            "x".repeat(1 << 20),
            "<a href=y>z</a>".repeat(10_000)
        );
        let begun = std::time::Instant::now();
        assert!(read(&html).starts_with("[z](https://example.org/dir/y)"));
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    }
}
