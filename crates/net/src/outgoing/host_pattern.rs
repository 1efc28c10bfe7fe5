//! Patterns of host names: `example.org`, `*.example.org` or `*`. No IO.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use serde::Deserialize;

/// The hosts that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HostPattern(Pattern);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    All,
    /// A name or an address, as URLs have it after normalisation.
    One(String),
    /// All names that end in this suffix, which begins with a dot.
    Below(String),
}

/// A text that is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a host is a name or an IP address without a port, \"*.example.org\" for all names below one, or \"*\"")]
pub struct ParseHostPatternError;

impl HostPattern {
    /// Returns whether the host of a URL matches. `*.example.org` does not match `example.org`.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match &self.0 {
            Pattern::All => true,
            Pattern::One(name) => host == name,
            Pattern::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
        }
    }
}

impl FromStr for HostPattern {
    type Err = ParseHostPatternError;

    fn from_str(text: &str) -> Result<Self, ParseHostPatternError> {
        if text == "*" {
            return Ok(Self(Pattern::All));
        }
        Ok(Self(match text.strip_prefix("*.") {
            Some(name) => Pattern::Below(format!(".{}", normalised(name)?)),
            None => Pattern::One(normalised(text)?),
        }))
    }
}

impl TryFrom<String> for HostPattern {
    type Error = ParseHostPatternError;

    fn try_from(text: String) -> Result<Self, ParseHostPatternError> {
        text.parse()
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Pattern::All => f.write_str("*"),
            Pattern::One(name) => f.write_str(name),
            Pattern::Below(suffix) => write!(f, "*{suffix}"),
        }
    }
}

/// Writes a host as the parser of URLs does: in lower case, without Unicode, addresses in their
/// usual form.
fn normalised(host: &str) -> Result<String, ParseHostPatternError> {
    if host.is_empty() || host.contains(['/', '\\', '?', '#', '@', '*', '%']) || host.contains(char::is_whitespace) {
        return Err(ParseHostPatternError);
    }
    let is_v6 = host.parse::<std::net::Ipv6Addr>().is_ok();
    let url = if is_v6 {
        format!("https://[{host}]/")
    } else {
        format!("https://{host}/")
    };
    let url = Url::parse(&url).map_err(|_| ParseHostPatternError)?;
    // The default port vanishes in the URL, so the text is checked.
    let has_port = !is_v6 && host.rsplit_once(':').is_some_and(|(_, end)| !end.ends_with(']'));
    match url.host_str() {
        Some(host) if !has_port => Ok(host.strip_suffix('.').unwrap_or(host).to_owned()),
        _ => Err(ParseHostPatternError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_exactly_or_below_a_name() {
        for (pattern, host, expected) in [
            ("example.org", "example.org", true),
            ("EXAMPLE.org.", "example.org", true),
            ("example.org", "example.org.", true),
            ("example.org", "www.example.org", false),
            ("example.org", "badexample.org", false),
            ("*.example.org", "www.example.org", true),
            ("*.example.org", "a.b.example.org.", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", ".example.org", false),
            ("*.example.org", "badexample.org", false),
            ("*.example.org", "www.example.org.evil.net", false),
            ("bücher.de", "xn--bcher-kva.de", true),
            ("0x7f.1", "127.0.0.1", true),
            ("::1", "[::1]", true),
            ("[::1]", "[::1]", true),
            ("*", "anything", true),
        ] {
            let parsed: HostPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(host), expected, "{pattern} {host}");
            assert_eq!(parsed.to_string().parse(), Ok(parsed), "{pattern}");
        }
    }

    #[test]
    fn a_text_that_is_no_pattern_is_refused() {
        for text in [
            "",
            "*.",
            "*.*.org",
            "ex*.org",
            "example.org:443",
            "example.org:8080",
            "[::1]:443",
            "https://example.org",
            "example.org/a",
            "user@example.org",
            "two words",
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(ParseHostPatternError), "{text}");
        }
    }
}
