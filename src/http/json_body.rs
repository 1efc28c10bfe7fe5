//! Reads and decodes a JSON body strictly, with limits on bytes, time, depth and number of values.
//! Errors repeat names from the body, never its values.

use std::sync::Arc;

use axum::RequestExt as _;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use futures_util::StreamExt as _;
use serde::de::{Deserialize, DeserializeOwned};
use serde_json::value::RawValue;

use super::auth::Call;
use super::codes::ProblemCode;
use super::in_flight::{READING, SMALL};
use super::json_errors::decode_problem;
use super::limits::HttpLimits;
use super::problem::Problem;
use super::state::Api;
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::json::{ScanFault, scan_json};
use values::tenant::TenantId;

/// The error message for an integer that would be rounded.
pub(super) const LARGE_INTEGER: &str = "an integer of more than 64 bits would be rounded: send it as a string";

/// A decoded JSON body.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

/// The bytes of a body, with their room until they are decoded.
#[derive(Debug)]
pub(super) struct RawBody {
    bytes: Vec<u8>,
    room: Share,
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<Api>> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        check_media_type(request.headers())?;
        let body = read_body(request, api).await?;
        let api = Arc::clone(api);
        body.make(move |bytes| decode_body(bytes, &api.limits)).await.map(Self)
    }
}

impl RawBody {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes and their room.
    pub(super) fn into_parts(self) -> (Vec<u8>, Share) {
        (self.bytes, self.room)
    }

    /// Decodes the bytes with `work`, and releases their room.
    pub(super) async fn make<T: Send + 'static>(self, work: impl FnOnce(&[u8]) -> T + Send + 'static) -> T {
        let Self { bytes, room } = self;
        let (tenant, length) = (room.tenant().clone(), bytes.len() as u64);
        let work = move || {
            let _room = room;
            work(&bytes)
        };
        by_size(&tenant, length, work).await
    }
}

/// Decodes a part of a body that was stored verbatim; `pointer` is the JSON pointer to it.
pub(super) fn decode_part<'de, T: Deserialize<'de>>(raw: &'de RawValue, pointer: &str) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| decode_problem(pointer, &error))
}

/// Checks that the content type is JSON.
pub(super) fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let unsupported = |words: String| Err(Problem::new(ProblemCode::UnsupportedMediaType, words));
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.any(|encoding| encoding != "identity") {
        return unsupported("the body must not be compressed: leave Content-Encoding out".to_owned());
    }
    let Some(given) = headers
        .get(header::CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
    else {
        return unsupported("the header Content-Type is missing: send application/json".to_owned());
    };
    if headers.get_all(header::CONTENT_TYPE).iter().count() > 1 {
        return unsupported("the header Content-Type is given twice".to_owned());
    }
    let given = given.to_ascii_lowercase();
    let (essence, parameters) = given.split_once(';').unwrap_or((&given, ""));
    let essence = essence.trim();
    let is_json = essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"));
    if !is_json {
        return unsupported("the header Content-Type must be application/json".to_owned());
    }
    // JSON on the wire is UTF-8 (RFC 8259); another charset is an error.
    if charset(parameters).is_some_and(|charset| charset != "utf-8") {
        return unsupported("the body must be UTF-8: leave `charset` out of the header Content-Type".to_owned());
    }
    Ok(())
}

fn charset(parameters: &str) -> Option<&str> {
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        (name.trim() == "charset").then(|| value.trim().trim_matches('"'))
    })
}

/// Reads the bytes of a JSON body within the limits of size and time. A large body first waits for
/// room.
pub(super) async fn read_body(request: Request, api: &Api) -> Result<RawBody, Problem> {
    read_bytes(request, api, api.limits.max_body_bytes, READING).await
}

/// Reads a body of at most `max` bytes. Each of them takes the room of `copies` bytes.
pub(super) async fn read_bytes(mut request: Request, api: &Api, max: usize, copies: u64) -> Result<RawBody, Problem> {
    let Call { tenant, .. } = request.extract_parts().await?;
    read_bytes_of(request, api, &tenant, max, copies).await
}

/// Reads a body of at most `max` bytes from a caller who is not known yet.
pub(super) async fn read_open_body(request: Request, api: &Api, max: usize) -> Result<RawBody, Problem> {
    read_bytes_of(request, api, &TenantId::anonymous(), max, READING).await
}

async fn read_bytes_of(
    request: Request,
    api: &Api,
    tenant: &TenantId,
    max: usize,
    copies: u64,
) -> Result<RawBody, Problem> {
    let limits = &api.limits;
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > max as u64) {
        return Err(too_large(max));
    }
    let room = announced.unwrap_or(max as u64).saturating_mul(copies);
    let reading = collect(request.into_body(), max, room, api, tenant);
    tokio::time::timeout(limits.request_timeout, reading)
        .await
        .unwrap_or_else(|_| {
            let seconds = limits.request_timeout.as_secs_f64();
            Err(Problem::new(
                ProblemCode::RequestTimeout,
                format!("the body did not arrive within {seconds} seconds"),
            ))
        })
}

/// Collects the chunks of a body. All of it takes `cost` bytes of room. Without a content length,
/// that is the cost of the largest allowed body.
async fn collect(body: Body, max: usize, cost: u64, api: &Api, tenant: &TenantId) -> Result<RawBody, Problem> {
    let cost = usize::try_from(cost).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    let mut room = api.in_flight.take(tenant, 0).await;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            Problem::new(
                ProblemCode::MalformedBody,
                "the body broke off or is not encoded as its headers say",
            )
            .with_cause(error)
        })?;
        let length = bytes.len() + chunk.len();
        if length > max {
            return Err(too_large(max));
        }
        if length > SMALL && room.amount() == 0 {
            room = api.in_flight.take_soon(tenant, cost).await?;
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(RawBody { bytes, room })
}

fn too_large(max: usize) -> Problem {
    let words = format!("a body has at most {max} bytes");
    Problem::new(ProblemCode::BodyTooLarge, words)
}

/// Returns the text of a body, which is JSON within the limits.
pub(super) fn scan_body<'a>(bytes: &'a [u8], limits: &HttpLimits) -> Result<&'a str, Problem> {
    if bytes.is_empty() {
        return Err(Problem::new(ProblemCode::EmptyBody, "the request needs a JSON body"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Problem::new(
            ProblemCode::InvalidUtf8,
            format!("the body is not valid UTF-8 at byte {}", error.valid_up_to()),
        )
    })?;
    // RFC 8259 lets a reader ignore a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    scan_json(text, limits.max_json_depth, limits.max_json_values).map_err(scan_problem)?;
    Ok(text)
}

/// Decodes the bytes of a body, which must be an object.
pub(super) fn decode_body<T: DeserializeOwned>(bytes: &[u8], limits: &HttpLimits) -> Result<T, Problem> {
    let text = scan_body(bytes, limits)?;
    if !text.trim_start().starts_with('{') {
        return Err(Problem::invalid_field("", "not a JSON object"));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| decode_problem("", &error))
}

fn scan_problem(fault: ScanFault) -> Problem {
    match fault {
        ScanFault::Syntax(message) => Problem::new(ProblemCode::MalformedJson, message),
        ScanFault::TooDeep(limit) => Problem::new(
            ProblemCode::JsonTooDeep,
            format!("objects and arrays may be nested {limit} levels deep"),
        ),
        ScanFault::TooManyValues(limit) => Problem::new(
            ProblemCode::JsonTooLarge,
            format!("the body may have {limit} JSON values"),
        ),
        ScanFault::Nul(pointer) => Problem::of_field(
            ProblemCode::NulCharacter,
            pointer.replace('\0', "\u{fffd}"),
            "NUL characters can't be stored",
        ),
        ScanFault::DuplicateKey(pointer) => {
            Problem::of_field(ProblemCode::DuplicateKey, pointer, "the key appears twice")
        }
        ScanFault::LargeInteger(pointer) => Problem::invalid_field(pointer, LARGE_INTEGER),
    }
}
