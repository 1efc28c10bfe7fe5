//! The URLs and headers of a protocol's requests. No IO. Keys are never shown.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use super::settings::ProviderSettings;

/// Settings that no client can be made of.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The address is not an HTTP URL.
    #[error("the base URL {url:?} is not an http or https URL")]
    BaseUrl {
        /// The address.
        url: String,
    },
    /// The protocol was not built in.
    #[error("this build has no client of such providers: build it with `--features {feature}`")]
    NotBuilt {
        /// The feature of the build.
        feature: &'static str,
    },
    /// The name or value of a header can't be sent.
    #[error("the header {name:?} can't be sent: its name or value is malformed")]
    Header { name: String },
}

/// A protocol's rules for addresses and headers.
#[derive(Debug)]
pub(super) struct AddressRules {
    /// The public address of the protocol's owner, with `{region}` for the region of AWS.
    pub(super) base: &'static str,
    /// The version segment before the path; a configured address may end with it, or with another
    /// version.
    pub(super) version: &'static str,
    /// The segments of the path.
    pub(super) path: &'static [&'static str],
    /// The header with the key.
    pub(super) key: KeyHeader,
    /// Headers that each request carries, unless the settings override them.
    pub(super) headers: &'static [(&'static str, &'static str)],
}

/// The header that contains the key.
#[derive(Debug)]
pub(super) enum KeyHeader {
    /// `Authorization: Bearer`.
    Bearer,
    /// A header of this name, with the key as its whole value.
    Named(&'static str),
}

impl AddressRules {
    /// Returns the URL for requests to the provider.
    pub(super) fn endpoint(&self, settings: &ProviderSettings) -> Result<Url, SettingsError> {
        let public = || self.base.replace("{region}", &settings.aws.region);
        let base = settings.base_url.clone().unwrap_or_else(public);
        let wrong = || SettingsError::BaseUrl { url: base.clone() };
        let mut url = Url::parse(&base).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(wrong());
        }
        let path = url.path().trim_end_matches('/');
        let ends_with = |end: &str| path.strip_suffix(end).is_some_and(|before| before.ends_with('/'));
        if self.path.is_empty() || !ends_with(&self.path.join("/")) {
            let version = Some(self.version).filter(|version| !version.is_empty() && !ends_with_version(path));
            let mut segments = url.path_segments_mut().map_err(|()| wrong())?;
            segments.pop_if_empty().extend(version).extend(self.path);
        }
        Ok(url)
    }

    /// Returns the headers of each request to the provider.
    pub(super) fn headers(&self, settings: &ProviderSettings) -> Result<HeaderMap, SettingsError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = if settings.stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        for (name, value) in self.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(key) = &settings.api_key {
            let (name, value) = self.key.header(key);
            headers.insert(HeaderName::from_static(name), sensitive(name, &value)?);
        }
        for (name, value) in &settings.headers {
            let key =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| SettingsError::Header { name: name.clone() })?;
            headers.insert(key, sensitive(name, value.expose_secret())?);
        }
        Ok(headers)
    }
}

/// Returns whether a path ends with a version, such as `v1` or `v1beta`.
fn ends_with_version(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    let number = last.strip_prefix('v').unwrap_or_default();
    number.starts_with(|c: char| c.is_ascii_digit())
}

impl KeyHeader {
    fn header(&self, key: &SecretString) -> (&'static str, String) {
        let key = key.expose_secret();
        match self {
            Self::Bearer => ("authorization", format!("Bearer {key}")),
            Self::Named(name) => (name, key.to_owned()),
        }
    }
}

/// Returns whether the address is on this machine. Compares the whole host, since a foreign name
/// can begin like a local one.
pub(super) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn sensitive(name: &str, value: &str) -> Result<HeaderValue, SettingsError> {
    let value = HeaderValue::from_str(value);
    let mut value = value.map_err(|_| SettingsError::Header { name: name.to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ProviderKind;

    const PLAIN: AddressRules = AddressRules {
        base: "https://api.openai.com/v1",
        version: "",
        path: &["chat", "completions"],
        key: KeyHeader::Bearer,
        headers: &[],
    };
    const VERSIONED: AddressRules = AddressRules {
        base: "https://api.anthropic.com",
        version: "v1",
        path: &["messages"],
        key: KeyHeader::Named("x-api-key"),
        headers: &[("anthropic-version", "2023-06-01")],
    };
    const PATHLESS: AddressRules = AddressRules {
        base: "https://generativelanguage.googleapis.com",
        version: "v1beta",
        path: &[],
        key: KeyHeader::Named("x-goog-api-key"),
        headers: &[],
    };

    fn settings(base: Option<&str>) -> ProviderSettings {
        ProviderSettings {
            base_url: base.map(str::to_owned),
            ..ProviderSettings::new("p", ProviderKind::OpenAiChat)
        }
    }

    #[test]
    fn the_path_is_joined_to_any_base() {
        for (protocol, base, url) in [
            (&PLAIN, None, "https://api.openai.com/v1/chat/completions"),
            (
                &PLAIN,
                Some("http://127.0.0.1:11434/v1/"),
                "http://127.0.0.1:11434/v1/chat/completions",
            ),
            (&PLAIN, Some("http://h"), "http://h/chat/completions"),
            (
                &PLAIN,
                Some("https://h/openai?api-version=1"),
                "https://h/openai/chat/completions?api-version=1",
            ),
            (
                &PLAIN,
                Some("https://h/v1/chat/completions"),
                "https://h/v1/chat/completions",
            ),
            (&VERSIONED, None, "https://api.anthropic.com/v1/messages"),
            (&VERSIONED, Some("https://h/"), "https://h/v1/messages"),
            (&VERSIONED, Some("https://h/v1"), "https://h/v1/messages"),
            (&VERSIONED, Some("https://h/v1/"), "https://h/v1/messages"),
            (&VERSIONED, Some("https://h/proxy"), "https://h/proxy/v1/messages"),
            (&VERSIONED, Some("https://h/av1"), "https://h/av1/v1/messages"),
            (&VERSIONED, Some("https://h/v1/messages"), "https://h/v1/messages"),
            (&VERSIONED, Some("https://h/v2beta"), "https://h/v2beta/messages"),
            (
                &VERSIONED,
                Some("https://h/v1/gateway"),
                "https://h/v1/gateway/v1/messages",
            ),
            (&PATHLESS, None, "https://generativelanguage.googleapis.com/v1beta"),
            (&PATHLESS, Some("https://h/v1/"), "https://h/v1"),
            (&PATHLESS, Some("https://h/gateway"), "https://h/gateway/v1beta"),
        ] {
            assert_eq!(protocol.endpoint(&settings(base)).unwrap().as_str(), url);
        }
        for base in ["", "h", "ftp://h/", "data:,x", "http://"] {
            assert!(PLAIN.endpoint(&settings(Some(base))).is_err(), "{base}");
        }
    }

    #[test]
    fn the_key_stands_in_the_header_of_the_protocol() {
        let mut settings = settings(None);
        settings.api_key = Some("sk".into());
        let header = |protocol: &AddressRules, settings: &ProviderSettings, name: &str| {
            let headers = protocol.headers(settings).unwrap();
            headers.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(header(&PLAIN, &settings, "authorization").as_deref(), Some("Bearer sk"));
        assert_eq!(header(&VERSIONED, &settings, "x-api-key").as_deref(), Some("sk"));
        assert_eq!(header(&VERSIONED, &settings, "authorization"), None);
        let version = |settings: &ProviderSettings| header(&VERSIONED, settings, "anthropic-version");
        assert_eq!(version(&settings).as_deref(), Some("2023-06-01"));
        settings.headers = BTreeMap::from([("Anthropic-Version".to_owned(), "2030-01-01".into())]);
        assert_eq!(version(&settings).as_deref(), Some("2030-01-01"), "the settings win");
    }

    #[test]
    fn only_this_machine_is_local() {
        for (base, local) in [
            ("http://127.0.0.1:8000/v1", true),
            ("http://127.9.9.9/v1", true),
            ("http://localhost", true),
            ("http://LOCALHOST:1/v1", true),
            ("https://localhost/v1", true),
            ("http://[::1]:8000/v1", true),
            ("http://localhost.evil.example/v1", false),
            ("http://127.0.0.1.evil.example", false),
            ("http://localhost@evil.example", false),
            ("http://10.0.0.1", false),
            ("http://[::2]", false),
            ("", false),
        ] {
            assert_eq!(Url::parse(base).is_ok_and(|url| is_local(&url)), local, "{base}");
        }
    }

    #[test]
    fn the_key_is_never_shown() {
        for protocol in [PLAIN, VERSIONED] {
            let mut settings = settings(None);
            settings.api_key = Some("sk-secret".into());
            settings.headers = BTreeMap::from([("x-extra".to_owned(), "hidden".into())]);
            let shown = format!("{:?} {:?}", settings, protocol.headers(&settings).unwrap());
            assert!(!shown.contains("sk-secret") && !shown.contains("hidden"), "{shown}");
            settings.api_key = Some("a\nb".into());
            let error = protocol.headers(&settings).unwrap_err().to_string();
            assert!(
                error.ends_with("can't be sent: its name or value is malformed"),
                "{error}"
            );
        }
    }
}
