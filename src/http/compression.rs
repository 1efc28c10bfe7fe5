//! Compresses large JSON for callers that accept it.
//!
//! Only a body that is whole in memory is compressed, at once. So neither a stream nor a slow
//! reader holds an encoder, and the compressed body takes less room in flight than the plain one.
//! Streams, files and archives are sent as they are.

use std::io::{self, Write as _};

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::in_flight::{InFlight, held};
use super::pretty::wants_indented;
use super::problem::Problem;
use tasks::off_thread::by_size;
use values::tenant::TenantId;

/// The smallest body that is compressed, in bytes.
const LEAST_BYTES: u64 = 8 << 10;
/// The fastest level of zstd that is as good as gzip's fastest.
const ZSTD_LEVEL: i32 = 1;

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Zstd,
}

impl Coding {
    /// Returns the coding that the caller prefers; `None` for the plain body. JSON with line breaks
    /// is for people, and is written while it is sent.
    pub(super) fn accepted(request: &Request) -> Option<Self> {
        if wants_indented(request.uri()) {
            return None;
        }
        preferred(request.headers())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    fn encode(self, plain: &[u8]) -> io::Result<Box<[u8]>> {
        let encoded = match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(plain)?;
                encoder.finish()?
            }
            Self::Zstd => zstd::bulk::compress(plain, ZSTD_LEVEL)?,
        };
        Ok(encoded.into_boxed_slice())
    }
}

/// Compresses the body of a response if it is large JSON.
pub(super) async fn compress(
    in_flight: &InFlight,
    tenant: &TenantId,
    coding: Option<Coding>,
    mut response: Response,
) -> Result<Response, Problem> {
    if !is_compressible(&response) {
        return Ok(response);
    }
    let vary = HeaderValue::from_static("accept-encoding");
    response.headers_mut().append(header::VARY, vary);
    let Some(coding) = coding else {
        return Ok(response);
    };
    let (mut parts, body) = response.into_parts();
    // The body is in memory already.
    let plain = to_bytes(body, usize::MAX).await.map_err(Problem::internal)?;
    // Taking nothing does not wait. The plain body holds its own share.
    let mut share = in_flight.take(tenant, 0).await;
    share.set(plain.len());
    let copy = plain.clone();
    let encoded = by_size(tenant, plain.len() as u64, move || coding.encode(&copy)).await;
    let encoded = encoded.map_err(Problem::internal)?;
    if encoded.len() >= plain.len() {
        return Ok(Response::from_parts(parts, Body::from(plain)));
    }
    drop(plain);
    share.set(encoded.len());
    mark(&mut parts.headers, coding);
    Ok(Response::from_parts(parts, Body::from(held(encoded.into(), share))))
}

fn is_compressible(response: &Response) -> bool {
    let headers = response.headers();
    let media_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    // A file of a session may be JSON as well.
    let is_file = headers.contains_key(header::ACCEPT_RANGES);
    let bytes = response.body().size_hint().exact();
    matches!(media_type, Some(b"application/json"))
        && !is_file
        && !headers.contains_key(header::CONTENT_ENCODING)
        && bytes.is_some_and(|bytes| bytes >= LEAST_BYTES)
}

/// Describes a compressed body. A strong entity tag would name the bytes of the plain body.
fn mark(headers: &mut HeaderMap, coding: Coding) {
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    let tag = headers.get(header::ETAG).map(HeaderValue::as_bytes);
    let strong = tag.filter(|tag| !tag.starts_with(b"W/"));
    let weak = strong.and_then(|tag| HeaderValue::from_bytes(&[&b"W/"[..], tag].concat()).ok());
    if let Some(weak) = weak {
        headers.insert(header::ETAG, weak);
    }
}

/// Returns the coding of the highest weight (RFC 9110, 12.5.3), and zstd among equals. The plain
/// body wins only with a higher weight than both.
fn preferred(headers: &HeaderMap) -> Option<Coding> {
    let any = weight(headers, "*");
    let plain = weight(headers, "identity").unwrap_or(0.0);
    let codings = [Coding::Gzip, Coding::Zstd].into_iter();
    let weighed = codings.map(|coding| (coding, weight(headers, coding.name()).or(any).unwrap_or(0.0)));
    let accepted = weighed.filter(|(_, weight)| *weight > 0.0 && *weight >= plain);
    let best = accepted.max_by(|(_, left), (_, right)| left.total_cmp(right));
    best.map(|(coding, _)| coding)
}

/// Returns the weight of a coding, from 0 to 1; `None` if the headers do not name it. A malformed
/// weight counts as 0.
fn weight(headers: &HeaderMap, name: &str) -> Option<f32> {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut codings = values.flat_map(|value| value.split(','));
    codings.find_map(|coding| {
        let (coding, parameter) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let is_named = coding.trim().eq_ignore_ascii_case(name);
        let (_, weight) = parameter.split_once('=').unwrap_or_default();
        is_named.then(|| weight.trim().parse().unwrap_or(0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coding_of_the_highest_weight_is_used() {
        let (gzip, zstd) = (Some(Coding::Gzip), Some(Coding::Zstd));
        for (lines, expected) in [
            (&[][..], None),
            (&[""][..], None),
            (&["gzip"][..], gzip),
            (&["gzip, deflate, br, zstd"][..], zstd),
            (&["GZip"][..], gzip),
            (&["br", "gzip"][..], gzip),
            (&["zstd;q=0.5, gzip;q=0.8"][..], gzip),
            (&["zstd; q=0.5 , gzip;Q=0.5"][..], zstd),
            (&["zstd;q=0, gzip;q=0.000"][..], None),
            (&["gzip;q=much"][..], None),
            (&["*"][..], zstd),
            (&["*;q=0.1, zstd;q=0"][..], gzip),
            (&["*;q=0"][..], None),
            (&["identity, gzip;q=0.5"][..], None),
            (&["identity, gzip"][..], gzip),
            (&["identity;q=0"][..], None),
            (&["gzipped, x-zstd"][..], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static(line));
            }
            assert_eq!(preferred(&headers), expected, "{lines:?}");
        }
    }
}
