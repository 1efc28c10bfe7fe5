//! Idempotent requests: the caller's key, and the digest that detects whether another request is
//! the same.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::headers::{invalid, single};
use super::json_body::{check_media_type, decode_body, read_body};
use super::problem::Problem;
use super::state::Api;
use crate::run::{RequestKey, RequestOrigin};
use values::json::{Value, canonical_bytes};
use values::session::Hash;

/// The header with the caller's key.
const KEY: &str = "idempotency-key";
/// The longest key, in bytes.
pub(super) const MAX_KEY: usize = 255;
/// The header that names the thread of a request, beside its body.
pub(super) const THREAD: &str = "x-agent-thread";
/// The header of a replayed response.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A decoded JSON body, the caller's key for the request, and its name in the log.
#[derive(Debug)]
pub(super) struct KeyedBody<T> {
    pub(super) key: Option<RequestKey>,
    pub(super) body: T,
    pub(super) bytes: u64,
    pub(super) origin: Option<RequestOrigin>,
}

impl<T> KeyedBody<T> {
    /// Changes the body. The key stays, since it covers the body as it was sent.
    pub(super) fn try_map<E>(self, change: impl FnOnce(T) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self {
            body: change(self.body)?,
            ..self
        })
    }
}

/// The caller's key for a request that needs no body.
#[derive(Debug)]
pub(super) struct KeyedRequest(pub(super) Option<RequestKey>);

/// An empty body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Api>> for KeyedBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        let name = RequestName::of(&request)?;
        let origin = request.extensions().get::<RequestOrigin>().cloned();
        check_media_type(request.headers())?;
        let body = read_body(request, api).await?;
        let api = Arc::clone(api);
        let decode = move |bytes: &[u8]| {
            let body = decode_body(bytes, &api.limits)?;
            let key = name.map(|name| name.with_body(bytes));
            let bytes = bytes.len() as u64;
            Ok::<_, Problem>(Self {
                key,
                body,
                bytes,
                origin,
            })
        };
        body.make(decode).await
    }
}

impl FromRequest<Arc<Api>> for KeyedRequest {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        let name = RequestName::of(&request)?;
        let media_type = check_media_type(request.headers());
        let body = read_body(request, api).await?;
        if !body.is_empty() {
            media_type?;
        }
        let api = Arc::clone(api);
        let check = move |bytes: &[u8]| {
            if !bytes.is_empty() {
                let Nothing {} = decode_body(bytes, &api.limits)?;
            }
            Ok::<_, Problem>(Self(name.map(|name| name.with_body(bytes))))
        };
        body.make(check).await
    }
}

/// Marks a response as replayed or not.
pub(super) fn mark_replay(response: &mut Response, is_replay: bool) {
    if is_replay {
        response
            .headers_mut()
            .insert(REPLAYED, HeaderValue::from_static("true"));
    }
}

/// A request with a key, before its body is known.
#[derive(Debug)]
struct RequestName {
    key: String,
    method: Method,
    path: String,
    /// The header that names a thread; empty without one.
    thread: Vec<u8>,
}

impl RequestName {
    fn of(request: &Request) -> Result<Option<Self>, Problem> {
        let Some(key) = single(request.headers(), KEY)? else {
            return Ok(None);
        };
        if key.len() > MAX_KEY {
            return Err(invalid(KEY, format!("a key has at most {MAX_KEY} characters")));
        }
        let thread = request.headers().get(THREAD);
        Ok(Some(Self {
            key: key.to_owned(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            thread: thread.map_or_else(Vec::new, |thread| thread.as_bytes().to_vec()),
        }))
    }

    /// Adds the body. Bodies with equal JSON are the same, regardless of whitespace and the order
    /// of keys.
    fn with_body(self, body: &[u8]) -> RequestKey {
        let document = serde_json::from_slice::<Value>(body);
        let canonical = document.and_then(|document| canonical_bytes(&document));
        let body = canonical.as_deref().unwrap_or(body);
        let head = [self.method.as_str().as_bytes(), self.path.as_bytes(), &self.thread];
        RequestKey {
            key: self.key,
            digest: digest_of(head, body),
            valid_until: None,
        }
    }
}

/// Makes the key of a request that its own body names, within a space of names.
pub(super) fn named_by_body(space: &str, [agent, thread, run]: [&str; 3], body: &Value) -> RequestKey {
    let body = canonical_bytes(body).unwrap_or_default();
    let name = digest_of([space.as_bytes(), agent.as_bytes(), thread.as_bytes()], run.as_bytes());
    RequestKey {
        key: format!("{space}:{name}"),
        digest: digest_of([space.as_bytes(), b"", b""], &body),
        valid_until: None,
    }
}

/// Hashes a request. No part of its head contains a line break, so different requests never have
/// the same four parts.
fn digest_of(head: [&[u8]; 3], body: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("agent-runtime request v1");
    for part in head {
        hasher.update(part);
        hasher.update(b"\n");
    }
    hasher.update(body);
    Hash::from(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::body::Body;

    use super::*;

    fn request(method: &str, path: &str, key: Option<&str>) -> Request {
        let request = Request::builder().method(method).uri(path);
        let request = key.into_iter().fold(request, |request, key| request.header(KEY, key));
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn a_digest_covers_method_path_thread_and_body() {
        let digest_on = |thread: Option<&'static str>, method, path, body: &[u8]| {
            let mut request = request(method, path, Some("k"));
            let thread = thread.map(|thread| (HeaderName::from_static(THREAD), HeaderValue::from_static(thread)));
            request.headers_mut().extend(thread);
            let name = RequestName::of(&request).unwrap();
            name.unwrap().with_body(body).digest
        };
        let digest = |method, path, body: &[u8]| digest_on(None, method, path, body);
        let digests = BTreeSet::from([
            digest("POST", "/v1/runs", b"{}"),
            digest("PUT", "/v1/runs", b"{}"),
            digest("POST", "/v1/run", b"s{}"),
            digest("POST", "/v1/runs", br#"{"a": 1, "b": 2}"#),
            digest("POST", "/v1/runs", br#"{"a": 1, "b": "2"}"#),
            digest("POST", "/v1/runs", b""),
            digest_on(Some("ada"), "POST", "/v1/runs", b"{}"),
            digest_on(Some("bob"), "POST", "/v1/runs", b"{}"),
        ]);
        assert_eq!(digests.len(), 8);
        for same in [br"{}".as_slice(), b" {\n}", br#"{"b":2,"a":1}"#] {
            assert!(digests.contains(&digest("POST", "/v1/runs", same)));
        }
    }

    #[test]
    fn a_key_is_short_and_need_not_be_there() {
        let read =
            |key: Option<&str>| RequestName::of(&request("POST", "/", key)).map(|name| name.map(|name| name.key));
        assert_eq!(read(None).unwrap(), None);
        let longest = "k".repeat(MAX_KEY);
        assert_eq!(read(Some(&longest)).unwrap(), Some(longest.clone()));
        let problem = read(Some(&format!("{longest}k"))).unwrap_err();
        assert_eq!(problem.code(), crate::http::ProblemCode::InvalidHeader);
    }
}
