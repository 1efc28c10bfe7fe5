//! Hides secrets in responses, for a host that repeats its request, also in the forms of JSON, URLs
//! and base64.
//!
//! Each byte of a secret becomes `*`, so that lengths stay the same. A compressed response may hide
//! a secret from this, so hosts with a secret are asked for none.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use secrecy::{ExposeSecret as _, SecretSlice};

use super::body::ProxyBody;
use super::secret::HostSecret;

/// A body without the secrets.
pub(super) struct MaskedBody {
    body: ProxyBody,
    forms: Vec<SecretSlice<u8>>,
    /// The last bytes, which may begin a secret.
    held: BytesMut,
}

impl MaskedBody {
    pub(super) fn new<'a>(body: ProxyBody, secrets: impl IntoIterator<Item = &'a HostSecret>) -> Self {
        Self {
            body,
            forms: secrets.into_iter().flat_map(HostSecret::forms).collect(),
            held: BytesMut::new(),
        }
    }

    /// Adds bytes. Returns the bytes that can be passed on.
    fn pass(&mut self, bytes: &[u8]) -> Bytes {
        self.held.extend_from_slice(bytes);
        for form in &self.forms {
            mask(&mut self.held, form.expose_secret());
        }
        let begun = self.forms.iter().map(|form| begun(&self.held, form.expose_secret()));
        let ready = self.held.len() - begun.max().unwrap_or_default();
        self.held.split_to(ready).freeze()
    }
}

/// Replaces a secret.
fn mask(bytes: &mut [u8], secret: &[u8]) {
    let found: Vec<usize> = memmem::find_iter(bytes, secret).collect();
    for at in found {
        if let Some(found) = bytes.get_mut(at..at + secret.len()) {
            found.fill(b'*');
        }
    }
}

/// Returns how many bytes at the end may begin a secret.
fn begun(bytes: &[u8], secret: &[u8]) -> usize {
    let most = bytes.len().min(secret.len().saturating_sub(1));
    let begins = |length: &usize| bytes.get(bytes.len() - length..) == secret.get(..*length);
    (1..=most).rev().find(begins).unwrap_or_default()
}

/// Hides the secrets of a host in the headers of its response, and leaves out headers whose names
/// have one. Names come in lower case.
pub(super) fn mask_headers(headers: &mut HeaderMap, secrets: &[&HostSecret]) {
    let forms: Vec<_> = secrets.iter().flat_map(|secret| secret.forms()).collect();
    let lower: Vec<_> = forms
        .iter()
        .map(|form| form.expose_secret().to_ascii_lowercase())
        .collect();
    let has_secret = |name: &HeaderName| {
        let name = name.as_str().as_bytes();
        lower.iter().any(|form| memmem::find(name, form).is_some())
    };
    let named: Vec<_> = headers.keys().filter(|name| has_secret(name)).cloned().collect();
    for name in named {
        headers.remove(name);
    }
    for value in headers.values_mut() {
        let mut bytes = value.as_bytes().to_vec();
        for form in &forms {
            mask(&mut bytes, form.expose_secret());
        }
        if bytes != value.as_bytes()
            && let Ok(masked) = HeaderValue::from_bytes(&bytes)
        {
            *value = masked;
        }
    }
}

impl Body for MaskedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        loop {
            let polled = Pin::new(&mut self.body).poll_frame(context);
            let Poll::Ready(polled) = polled else {
                return Poll::Pending;
            };
            match polled {
                Some(Ok(frame)) => {
                    // Trailers are rare, and left out.
                    let Ok(data) = frame.into_data() else { continue };
                    let ready = self.pass(&data);
                    if !ready.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(ready))));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None if self.held.is_empty() => return Poll::Ready(None),
                None => {
                    let rest = self.held.split().freeze();
                    return Poll::Ready(Some(Ok(Frame::data(rest))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.held.len() as u64;
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + held);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::super::body::text;
    use super::*;

    #[test]
    fn a_secret_is_hidden_wherever_the_body_is_cut() {
        let secret = HostSecret::new("T", "a.org", ("x", ""), "abcabd".into()).unwrap();
        let whole = b"--abcabcabd-abcab-abcabdabcabd-a";
        for first in 0..whole.len() {
            for second in first..whole.len() {
                let mut body = MaskedBody::new(text(String::new()), [&secret]);
                let mut passed = Vec::new();
                for piece in [&whole[..first], &whole[first..second], &whole[second..]] {
                    passed.extend(body.pass(piece));
                }
                passed.extend(body.held);
                assert_eq!(passed, b"--abc******-abcab-************-a");
            }
        }
    }

    #[test]
    fn every_form_of_a_secret_is_hidden_in_bodies_and_headers() {
        let secret = HostSecret::new("T", "a.org", ("x", ""), "hunter2/SECRET".into()).unwrap();
        for sent in [
            "Bearer hunter2/SECRET",
            "Basic bWU6aHVudGVyMi9TRUNSRVQ=",
            r#"{"a": "hunter2\/SECRET"}"#,
            "?a=hunter2%2FSECRET&b",
        ] {
            let mut body = MaskedBody::new(text(String::new()), [&secret]);
            let mut passed = body.pass(sent.as_bytes()).to_vec();
            passed.extend(body.held);
            let passed = String::from_utf8(passed).unwrap();
            assert!(passed.contains("**********") && passed.len() == sent.len(), "{passed}");
            let mut headers = HeaderMap::new();
            headers.insert("x-echo", sent.parse().unwrap());
            headers.insert("x-hunter2%2fsecret", "1".parse().unwrap());
            mask_headers(&mut headers, &[&secret]);
            assert_eq!(headers.len(), 1);
            assert_eq!(headers["x-echo"], passed);
        }
    }
}
