//! Compresses large JSON for callers that accept it.
//!
//! Only a body that is whole in memory is compressed, at once. So neither a stream nor a slow
//! reader holds an encoder, and the compressed body takes less room in flight than the plain one.
//! Streams, files and archives are sent as they are. The console has compressed files of its own.

use std::io::{self, Write as _};

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::auth::Call;
use super::in_flight::held;
use super::pretty::wants_indented;
use super::problem::Problem;
use tasks::off_thread::by_size;

/// The smallest body that is compressed, in bytes.
const LEAST_BYTES: u64 = 8 << 10;
/// The fastest level of zstd that is as good as gzip's fastest.
const ZSTD_LEVEL: i32 = 1;

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Zstd,
}

impl Coding {
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

/// Compresses the body of a response if it is large JSON and the caller accepts a coding. JSON with
/// line breaks is for people, and is written while it is sent.
pub(super) async fn compress(call: Call, request: Request, next: Next) -> Result<Response, Problem> {
    let is_indented = wants_indented(request.uri());
    let coding = preferred(request.headers(), &[Coding::Gzip, Coding::Zstd]).filter(|_| !is_indented);
    let mut response = next.run(request).await;
    if !is_compressible(&response) {
        return Ok(response);
    }
    let vary = HeaderValue::from_static("accept-encoding");
    response.headers_mut().append(header::VARY, vary);
    match coding {
        Some(coding) => encode(&call, coding, response).await,
        None => Ok(response),
    }
}

/// Returns whether the caller accepts gzip, and does not prefer the plain body.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    preferred(headers, &[Coding::Gzip]).is_some()
}

/// Encodes the body of a response, unless that makes it longer.
async fn encode(call: &Call, coding: Coding, response: Response) -> Result<Response, Problem> {
    let (mut parts, body) = response.into_parts();
    // The body is in memory already.
    let plain = to_bytes(body, usize::MAX).await.map_err(Problem::internal)?;
    // Taking nothing does not wait. The plain body holds its own share.
    let mut share = call.api.in_flight.take(&call.tenant, 0).await;
    share.set(plain.len());
    let copy = plain.clone();
    let encoded = by_size(&call.tenant, plain.len() as u64, move || coding.encode(&copy)).await;
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

/// Returns the offered coding of the highest weight (RFC 9110, 12.5.3), and the last one among
/// equals. The plain body wins only with a higher weight than all of them.
fn preferred(headers: &HeaderMap, offered: &[Coding]) -> Option<Coding> {
    let any = weight(headers, "*");
    let plain = weight(headers, "identity").unwrap_or(0.0);
    let codings = offered.iter().copied();
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
    fn the_offered_coding_of_the_highest_weight_is_used() {
        let (gzip, zstd) = (Some(Coding::Gzip), Some(Coding::Zstd));
        for (lines, expected, is_gzip_accepted) in [
            (&[][..], None, false),
            (&[""][..], None, false),
            (&["gzip"][..], gzip, true),
            (&["gzip, deflate, br, zstd"][..], zstd, true),
            (&["GZip"][..], gzip, true),
            (&["br", "gzip"][..], gzip, true),
            (&["zstd"][..], zstd, false),
            (&["zstd;q=0.5, gzip;q=0.8"][..], gzip, true),
            (&["zstd; q=0.5 , gzip;Q=0.5"][..], zstd, true),
            (&["zstd;q=0, gzip;q=0.000"][..], None, false),
            (&["gzip;q=much"][..], None, false),
            (&["*"][..], zstd, true),
            (&["*;q=0.1, zstd;q=0"][..], gzip, true),
            (&["*;q=0"][..], None, false),
            (&["identity, gzip;q=0.5"][..], None, false),
            (&["identity, gzip"][..], gzip, true),
            (&["identity;q=0"][..], None, false),
            (&["gzipped, x-zstd"][..], None, false),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static(line));
            }
            let both = preferred(&headers, &[Coding::Gzip, Coding::Zstd]);
            assert_eq!(both, expected, "{lines:?}");
            assert_eq!(accepts_gzip(&headers), is_gzip_accepted, "{lines:?}");
        }
    }
}
