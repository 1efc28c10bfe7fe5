//! The arguments of a call, and the request that they describe.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::settings::HttpFetchSettings;
use crate::http::is_connection_header;
use net::outgoing::{HeaderMap, HeaderName, HeaderValue, HttpMethod, OutgoingRequest, Target};
use values::json::Value;

/// The longest URL, in bytes.
pub(super) const MAX_URL: usize = 8_192;
/// The longest body, in characters.
pub(super) const MAX_BODY: usize = 1_000_000;
/// The largest offset, in bytes. No text is that long.
pub(super) const MAX_OFFSET: usize = 1_000_000_000;
/// The media types that a request accepts by default.
const ACCEPT: &str = "text/html,application/xhtml+xml,application/json,text/*;q=0.9,*/*;q=0.5";
/// Headers that a redirect to another origin does not drop.
const PORTABLE_HEADERS: [&str; 2] = ["accept", "accept-language"];

/// The arguments, checked.
pub(super) struct Arguments {
    pub(super) url: String,
    pub(super) format: Format,
    pub(super) max_bytes: usize,
    pub(super) offset: usize,
    method: HttpMethod,
    /// Headers for every origin, and headers for the first one.
    headers: HeaderMap,
    origin_headers: HeaderMap,
    body: Option<String>,
}

/// The form in which the model reads HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    #[default]
    Text,
    Raw,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    url: String,
    method: Option<HttpMethod>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    #[serde(default)]
    format: Format,
    max_bytes: Option<usize>,
    #[serde(default)]
    offset: usize,
}

impl Arguments {
    /// Reads arguments that fit the schema. The error is for the model.
    pub(super) fn read(arguments: Value, settings: &HttpFetchSettings) -> Result<Self, String> {
        let written: Written = serde_json::from_value(arguments).map_err(|error| error.to_string())?;
        let method = written.method.unwrap_or(HttpMethod::Get);
        if !settings.methods.contains(&method) {
            return Err(format!("the method {} is not allowed", method.name()));
        }
        if method.is_safe() && written.body.is_some() {
            return Err(format!("a request with the method {} has no body", method.name()));
        }
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static(ACCEPT));
        if let Some(user_agent) = &settings.user_agent {
            headers.insert("user-agent", user_agent.clone());
        }
        let mut origin_headers = HeaderMap::new();
        for (name, value) in &written.headers {
            let (name, value) = header(name, value)?;
            if PORTABLE_HEADERS.contains(&name.as_str()) {
                headers.insert(name, value);
            } else {
                origin_headers.insert(name, value);
            }
        }
        let max_bytes = written.max_bytes.unwrap_or(settings.default_text_bytes);
        Ok(Self {
            url: written.url,
            format: written.format,
            max_bytes: max_bytes.min(settings.max_text_bytes),
            offset: written.offset,
            method,
            headers,
            origin_headers,
            body: written.body,
        })
    }

    /// Makes the request.
    pub(super) fn request(&self, target: Target, max_redirects: usize) -> OutgoingRequest {
        OutgoingRequest {
            method: self.method.into(),
            target,
            headers: self.headers.clone(),
            origin_headers: self.origin_headers.clone(),
            body: self.body.clone().map(Into::into),
            max_redirects,
        }
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed: HeaderName = name
        .parse()
        .map_err(|_| format!("{name:?} is not the name of a header"))?;
    let lower = parsed.as_str();
    if is_connection_header(lower) || lower == "user-agent" {
        return Err(format!("the header {lower} can't be set"));
    }
    let value =
        HeaderValue::from_str(value).map_err(|_| format!("the header {lower} has a value that can't be sent"))?;
    Ok((parsed, value))
}
