//! The path of a request. An argument is part of one segment and never changes the others.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use super::super::template::{Template, add_parameters};
use values::json::Object;

/// The characters that are escaped in an argument: all but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How often servers may decode a path.
const MAX_DECODINGS: usize = 4;

/// A scheme and a host without parameters, and a path with parameters.
#[derive(Debug)]
pub(in crate::http) struct PathPlan {
    /// The URL without its path.
    origin: Url,
    segments: Vec<Template>,
}

impl PathPlan {
    /// Parses a URL without a query, such as `https://example.org/v1/{id}`. The error says what is
    /// wrong.
    pub(in crate::http) fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or("it is no URL such as https://example.org/path")?;
        let (host, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
        if host.contains(['{', '}']) || scheme.contains(['{', '}']) {
            return Err("only the path, the query, headers and the body have parameters".to_owned());
        }
        if path.contains(['#', '?', '\\']) {
            return Err("its path has a fragment or a backslash".to_owned());
        }
        let origin = Url::parse(&format!("{scheme}://{host}/")).map_err(|_| "it is no URL".to_owned())?;
        let path = path.strip_prefix('/').unwrap_or_default();
        let segments = path.split('/').map(Template::parse);
        let plan = Self {
            origin,
            segments: segments.collect::<Result<_, _>>()?,
        };
        let mut parameters = BTreeSet::new();
        plan.add_parameters(&mut parameters);
        let sample = parameters.into_iter().map(|name| (name, "x".into())).collect();
        plan.url(&sample).map(|_| plan)
    }

    /// Replaces the names of parameters.
    pub(in crate::http) fn renamed(self, new_name: impl Fn(&str) -> String) -> Self {
        let segments = self.segments.into_iter().map(|segment| segment.renamed(&new_name));
        Self {
            segments: segments.collect(),
            ..self
        }
    }

    /// Adds the parameters to the used ones.
    pub(in crate::http) fn add_parameters(&self, used: &mut BTreeSet<String>) {
        for segment in &self.segments {
            add_parameters(segment, used);
        }
    }

    /// Returns the URL without its path.
    pub(in crate::http) fn origin(&self) -> &str {
        self.origin.as_str()
    }

    /// Returns the URL without a query.
    pub(super) fn url(&self, arguments: &Object) -> Result<Url, String> {
        let segments: Vec<String> = self
            .segments
            .iter()
            .map(|segment| filled(segment, arguments))
            .collect::<Result<_, _>>()?;
        let url = format!("{}{}", self.origin, segments.join("/"));
        let url = Url::parse(&url).map_err(|_| "the arguments give no URL".to_owned())?;
        // The checks above already prevent this.
        let count = url.path_segments().map_or(0, Iterator::count);
        if url.origin() != self.origin.origin() || count != segments.len() || url.query().is_some() {
            return Err("the arguments change the path".to_owned());
        }
        Ok(url)
    }
}

/// Fills in a segment. `.` and `..` would change the path, also if they are percent-encoded, or
/// between encoded slashes that a server decodes.
fn filled(segment: &Template, arguments: &Object) -> Result<String, String> {
    let missing = || format!("{} is missing", names(segment));
    let plain = segment.filled(arguments).ok_or_else(missing)?;
    let mut decoded = plain.clone();
    for _ in 0..MAX_DECODINGS {
        let has_dots = decoded.split(['/', '\\']).any(|part| matches!(part, "." | ".."));
        if has_dots || decoded.contains(char::is_control) {
            return Err(format!(
                "{} is part of a path, so it can't be or contain a segment \".\" or \"..\", or a control character",
                names(segment)
            ));
        }
        decoded = percent_decode_str(&decoded).decode_utf8_lossy().into_owned();
    }
    if plain.is_empty() && segment.parameters().next().is_some() {
        return Err(format!("{} is part of a path, so it can't be empty", names(segment)));
    }
    let encode = |text: String| utf8_percent_encode(&text, RESERVED).to_string();
    segment.filled_by(arguments, encode).ok_or_else(missing)
}

fn names(segment: &Template) -> String {
    let names: Vec<_> = segment.parameters().collect();
    match names.as_slice() {
        [] => "the path".to_owned(),
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(template: &str, value: &str) -> Result<String, String> {
        let plan = PathPlan::parse(template)?;
        let arguments = json!({"a": value, "b": "second"});
        plan.url(arguments.as_object().unwrap()).map(String::from)
    }

    #[test]
    fn an_argument_stays_in_its_segment() {
        for (value, expected) in [
            ("plain", "plain"),
            ("a b", "a%20b"),
            ("a/b", "a%2Fb"),
            ("a\\b", "a%5Cb"),
            ("a%2fb", "a%252fb"),
            ("?x=1", "%3Fx%3D1"),
            ("#x", "%23x"),
            ("@evil.example", "%40evil.example"),
            ("//evil.example/", "%2F%2Fevil.example%2F"),
            ("a;b=c&d", "a%3Bb%3Dc%26d"),
            ("é", "%C3%A9"),
            ("...", "..."),
            ("a..b", "a..b"),
            ("{a}", "%7Ba%7D"),
        ] {
            let expected = format!("https://example.org/v1/{expected}/second");
            assert_eq!(url("https://example.org/v1/{a}/{b}", value), Ok(expected), "{value}");
        }
    }

    #[test]
    fn an_argument_that_would_change_the_path_is_refused() {
        for value in [
            "",
            ".",
            "..",
            "%2e%2e",
            "%2E.",
            "%252e%252e",
            "../admin",
            "..\\admin",
            "a/../../b",
            "..%2fadmin",
            "..%252fadmin",
            "a/.",
            "a\nb",
            "a%0ab",
            "a\0",
        ] {
            let error = url("https://example.org/v1/{a}/{b}", value).unwrap_err();
            assert!(error.starts_with("a is part of a path"), "{value:?}: {error}");
        }
        // A literal next to the parameter counts, too.
        assert!(url("https://example.org/.{a}", ".").is_err());
        assert!(url("https://example.org/v{a}", "").is_ok_and(|url| url == "https://example.org/v"));
    }

    #[test]
    fn only_the_path_has_parameters() {
        for template in [
            "https://{a}/",
            "https://{a}.example.org/",
            "{a}://example.org/",
            "https://example.org:{a}/",
            "https://u:{a}@example.org/",
            "example.org/{a}",
            "https://example.org/a#b",
            "https://example.org/../{a}",
            "https://example.org/a/./{a}",
            "https://example.org/%2e%2e/{a}",
            "https://example.org\\@evil.example/{a}",
            "https://",
            "https://example.org/{a",
        ] {
            assert!(PathPlan::parse(template).is_err(), "{template}");
        }
        assert_eq!(url("https://example.org", "x").unwrap(), "https://example.org/");
        assert_eq!(url("https://example.org/a/", "x").unwrap(), "https://example.org/a/");
    }
}
