//! A running service, as a client sees it: requests to its public API, and its problems as errors.
//!
//! The operator chooses the address, so it may be a private one. Follows no redirect, since the key
//! is meant for the named service only.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::timeout;
use url::form_urlencoded;

use super::output::plain;
use net::outgoing::{
    AddressRules, ClientSettings, HeaderMap, HeaderValue, Method, OutgoingClient, OutgoingError, OutgoingRequest,
    OutgoingResponse, SystemResolver, within,
};
use values::causes::with_causes;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a response may send nothing. A stream sends comments more often.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// The most bytes of a response that is read whole.
pub(super) const MAX_BODY: usize = 256 << 20;
/// The most bytes of a problem.
const MAX_PROBLEM: usize = 1 << 20;
/// The most items of one page.
const PAGE: usize = 200;

/// A service and the key for it.
#[derive(Debug)]
pub(super) struct Service {
    client: OutgoingClient,
    /// The address without a slash at its end.
    address: String,
    credentials: HeaderMap,
}

/// Why a request to a service has no result. Holds no error of IO, since an error of IO would count
/// as one of the command's own output.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServiceError {
    #[error("{address} is no address of a service: {reason}")]
    Address { address: String, reason: String },
    #[error("the key has characters that no key has")]
    Key,
    #[error("no response from the service {address}: {cause}")]
    Transport {
        address: String,
        cause: String,
        may_pass: bool,
    },
    #[error("the service {address} redirects to {target}: name that address instead")]
    Redirect { address: String, target: String },
    #[error("{} ({}){}", .0.text(), plain(&.0.code), .0.advice())]
    Problem(Problem),
    #[error("{address} responds with the status {status} and no JSON: is it the address of an agent-runtime?")]
    Foreign { address: String, status: u16 },
    #[error("the response of the service {address} has more than {MAX_BODY} bytes")]
    TooLarge { address: String },
    #[error("the response of the service {address} can't be read: {reason}")]
    Unreadable { address: String, reason: String },
}

/// A problem of the service.
#[derive(Debug, Deserialize)]
pub(super) struct Problem {
    title: String,
    status: u16,
    #[serde(default)]
    detail: String,
    pub(super) code: String,
}

/// A page of a list.
#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
    next_cursor: Option<String>,
}

impl Problem {
    fn text(&self) -> String {
        plain(&format!("{}: {}", self.title, self.detail))
    }

    fn advice(&self) -> &'static str {
        match self.status {
            401 => "; the key comes from the variable AGENT_RUNTIME_KEY or from --key",
            _ => "",
        }
    }
}

impl ServiceError {
    /// Returns whether the same request may succeed soon.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Transport { may_pass, .. } => *may_pass,
            Self::Problem(Problem { status, .. }) | Self::Foreign { status, .. } => {
                matches!(status, 429 | 502 | 503 | 504)
            }
            _ => false,
        }
    }
}

impl Service {
    /// Makes a client of a service. Connects only with the first request.
    pub(super) fn new(address: &str, key: Option<&SecretString>) -> Result<Self, ServiceError> {
        let fault = |reason: &dyn ToString| ServiceError::Address {
            address: plain(address),
            reason: reason.to_string(),
        };
        let settings = ClientSettings {
            connect_timeout: CONNECT_TIMEOUT,
            decompress: true,
        };
        let client = OutgoingClient::new(AddressRules::of_operator(), settings, Arc::new(SystemResolver));
        let client = client.map_err(|error| fault(&with_causes(&error)))?;
        let url = client.target(address).map_err(|error| fault(&error))?.url().clone();
        if url.query().is_some() || url.fragment().is_some() {
            return Err(fault(&"it has a query or a fragment"));
        }
        let mut credentials = HeaderMap::new();
        if let Some(key) = key {
            let value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()));
            let mut value = value.map_err(|_| ServiceError::Key)?;
            value.set_sensitive(true);
            credentials.insert("authorization", value);
        }
        Ok(Self {
            client,
            address: url.as_str().trim_end_matches('/').to_owned(),
            credentials,
        })
    }

    /// Returns the address for the user.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Gets a JSON document.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ServiceError> {
        let response = self.send(Method::GET, path, None, HeaderMap::new()).await?;
        self.document(response).await
    }

    /// Gets a JSON document as it is.
    pub(super) async fn get_json(&self, path: &str) -> Result<Box<RawValue>, ServiceError> {
        self.get(path).await
    }

    /// Posts a request without a body and returns the JSON of the response.
    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T, ServiceError> {
        let response = self.send(Method::POST, path, None, HeaderMap::new()).await?;
        self.document(response).await
    }

    /// Gets the items of a list, page by page, up to the given number.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        filters: &[(&str, Option<String>)],
        most: usize,
    ) -> Result<Vec<T>, ServiceError> {
        let mut items = Vec::new();
        let mut cursor = None;
        loop {
            let mut query = form_urlencoded::Serializer::new(String::new());
            let set = filters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
            query.extend_pairs(set);
            query.append_pair("limit", &PAGE.min(most - items.len()).to_string());
            query.extend_pairs(cursor.map(|cursor: String| ("cursor", cursor)));
            let page: Page<T> = self.get(&format!("{path}?{}", query.finish())).await?;
            items.extend(page.data.into_iter().take(most - items.len()));
            cursor = page.next_cursor;
            if cursor.is_none() || items.len() >= most {
                return Ok(items);
            }
        }
    }

    /// Sends a request and returns the response if its status is a success.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        mut headers: HeaderMap,
    ) -> Result<OutgoingResponse, ServiceError> {
        let target = self.client.target(&format!("{}{path}", self.address));
        let target = target.map_err(|error| self.unreadable(&error))?;
        if body.is_some() {
            headers.insert("content-type", HeaderValue::from_static("application/json"));
        }
        let request = OutgoingRequest {
            method,
            target,
            headers,
            origin_headers: self.credentials.clone(),
            body: body.map(Into::into),
            max_redirects: 0,
        };
        let response = within(IDLE_TIMEOUT, self.client.send(request)).await;
        let response = response.map_err(|error| self.broken(&error))?;
        match response.status() {
            200..300 => Ok(response),
            status @ 300..400 => Err(match header(&response, "location") {
                Some(target) => ServiceError::Redirect {
                    address: self.address.clone(),
                    target: plain(target),
                },
                None => self.foreign(status),
            }),
            status => Err(self.problem(status, response).await),
        }
    }

    /// Returns the pieces of a body as they arrive.
    pub(super) fn pieces(
        &self,
        response: OutgoingResponse,
    ) -> impl Stream<Item = Result<bytes::Bytes, ServiceError>> + use<'_> {
        futures_util::stream::unfold(Box::pin(response.into_stream()), async |mut stream| {
            let piece = match timeout(IDLE_TIMEOUT, stream.next()).await {
                Ok(piece) => piece?,
                Err(_) => Err(OutgoingError::Timeout),
            };
            Some((piece.map_err(|error| self.broken(&error)), stream))
        })
    }

    /// Fails if the response is not of a media type.
    pub(super) fn require(&self, response: &OutgoingResponse, media_type: &str) -> Result<(), ServiceError> {
        if is_of(response, media_type) {
            Ok(())
        } else {
            Err(self.foreign(response.status()))
        }
    }

    async fn document<T: DeserializeOwned>(&self, response: OutgoingResponse) -> Result<T, ServiceError> {
        self.require(&response, "application/json")?;
        let body = self.read(response, MAX_BODY).await?;
        serde_json::from_slice(&body).map_err(|error| self.unreadable(&error))
    }

    async fn problem(&self, status: u16, response: OutgoingResponse) -> ServiceError {
        if !is_of(&response, "application/problem+json") {
            return self.foreign(status);
        }
        match self.read(response, MAX_PROBLEM).await {
            Ok(body) => {
                serde_json::from_slice(&body).map_or_else(|error| self.unreadable(&error), ServiceError::Problem)
            }
            Err(error) => error,
        }
    }

    async fn read(&self, response: OutgoingResponse, most: usize) -> Result<Vec<u8>, ServiceError> {
        let mut pieces = pin!(self.pieces(response));
        let mut body = Vec::new();
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            if piece.len() > most - body.len() {
                let address = self.address.clone();
                return Err(ServiceError::TooLarge { address });
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn broken(&self, error: &OutgoingError) -> ServiceError {
        ServiceError::Transport {
            address: self.address.clone(),
            cause: plain(&with_causes(error)),
            may_pass: error.may_pass(),
        }
    }

    fn foreign(&self, status: u16) -> ServiceError {
        let address = self.address.clone();
        ServiceError::Foreign { address, status }
    }

    /// Makes the error of a response that is not what the API promises.
    pub(super) fn unreadable(&self, reason: &dyn ToString) -> ServiceError {
        ServiceError::Unreadable {
            address: self.address.clone(),
            reason: plain(&reason.to_string()),
        }
    }
}

fn header<'a>(response: &'a OutgoingResponse, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn is_of(response: &OutgoingResponse, media_type: &str) -> bool {
    let given = header(response, "content-type").unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default();
    given.trim().eq_ignore_ascii_case(media_type)
}
