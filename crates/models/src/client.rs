//! Joins a protocol's encoder and decoder to the network: one request per attempt, events as they
//! arrive. Knows no provider's JSON.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::address::SettingsError;
use super::errors::{ERROR_BYTES, error_of_response, reclassified, refused_part};
use super::protocol::{Decoder, Protocol, Wire};
use super::retry::{Attempt, AttemptError, Retry};
use super::schema::{LastTools, Schemas, reduced};
use super::settings::{CapSettings, ErrorWords, ProviderSettings};
use super::strays;
use super::transport::{Incoming, Transport};
use agent::ports::{Model, ModelAddress, ModelError, ModelEvent, ModelRequest, ModelStream, StructuredOutput};
use net::trace_header::trace_header;
use values::clock::Clock;
use values::ids::IdSource;

/// The resources that the clients of all providers share.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    /// The HTTP client.
    pub(super) transport: Arc<Transport>,
    /// The retries of calls.
    pub(super) retry: Retry,
    /// Limits of responses.
    pub(super) caps: CapSettings,
    /// Makes ids for calls without one.
    pub(super) ids: Arc<dyn IdSource>,
    /// The clock for dates that providers name.
    pub(super) clock: Arc<dyn Clock>,
}

/// A provider that is reached over HTTP.
#[derive(Debug)]
pub(super) struct HttpModel {
    provider: Arc<Provider>,
}

#[derive(Debug)]
struct Provider {
    shared: Shared,
    url: Url,
    address: Arc<ModelAddress>,
    headers: HeaderMap,
    /// The secrets that no error may repeat.
    secrets: Vec<SecretString>,
    wire: Box<dyn Wire>,
    stream: bool,
    trace_context: bool,
    structured_output: StructuredOutput,
    error_words: ErrorWords,
    schemas: Schemas,
    last_tools: LastTools,
}

impl HttpModel {
    /// Makes the client of a provider.
    pub(super) fn new(settings: &ProviderSettings, shared: Shared, protocol: &Protocol) -> Result<Self, SettingsError> {
        let url = protocol.address.endpoint(settings)?;
        let wire = (protocol.wire)(settings, &url);
        let provider = Provider {
            headers: protocol.address.headers(settings)?,
            secrets: secrets(settings),
            structured_output: settings.structured_output.unwrap_or(wire.structured_output()),
            error_words: settings.error_words.clone(),
            schemas: Schemas::of(settings.kind),
            last_tools: LastTools::default(),
            wire,
            stream: settings.stream,
            trace_context: settings.trace_context,
            address: Arc::new(address(settings, &url)),
            url,
            shared,
        };
        Ok(Self {
            provider: Arc::new(provider),
        })
    }
}

impl Model for HttpModel {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        let provider = Arc::clone(&self.provider);
        let (request, names) = reduced(request, provider.schemas, &provider.last_tools);
        let asked = Arc::new(request.clone());
        let sent = Arc::clone(&asked);
        let url = provider.wire.url(&provider.url, &request, provider.stream);
        let body = Bytes::from(provider.wire.encode(&request, provider.stream));
        let mut headers = provider.headers.clone();
        if let Some((name, value)) = provider.wire.header(&request) {
            headers.append(name, HeaderValue::from_static(value));
        }
        let trace = request.trace.filter(|_| provider.trace_context);
        headers.extend(trace.and_then(trace_header));
        let retry = provider.shared.retry.clone();
        let address = Arc::clone(&provider.address);
        let events = retry.run(move || provider.attempt(&sent, url.clone(), headers.clone(), body.clone()));
        let events = events.map(move |event| match event {
            Ok(ModelEvent::Completed(response)) => {
                let response = response.made_by(&address.provider, &asked.model);
                Ok(ModelEvent::Completed(Box::new(response)))
            }
            Ok(event) => Ok(event),
            Err(error) => Err(ModelError {
                refused: refused_part(&error, &asked).map(Box::new),
                ..error
            }),
        });
        names.restored(events.boxed())
    }

    fn structured_output(&self) -> StructuredOutput {
        self.provider.structured_output
    }
}

impl Provider {
    fn attempt(self: &Arc<Self>, request: &Arc<ModelRequest>, url: Url, headers: HeaderMap, body: Bytes) -> Attempt {
        let call = Call {
            provider: Arc::clone(self),
            request: Arc::clone(request),
            phase: Phase::Send(url, headers, body),
        };
        let next = |mut call: Call| async move { call.next().await.map(|news| (news, call)) };
        let items = |(events, failure): News| stream::iter(events.into_iter().map(Ok).chain(failure.map(Err)));
        stream::unfold(call, next).flat_map(items).boxed()
    }

    async fn send(&self, url: Url, mut headers: HeaderMap, body: Bytes) -> Result<Phase, AttemptError> {
        self.wire
            .authorize(&mut headers, &url, &body, self.shared.clock.now())?;
        let mut incoming = self.shared.transport.post(url, headers, body).await?;
        let status = incoming.status();
        if !(200..300).contains(&status) {
            let retry_after = incoming.retry_after(self.shared.clock.now());
            let body = incoming.read_start(ERROR_BYTES).await;
            return Err(error_of_response(status, retry_after, &body));
        }
        let ids = Arc::clone(&self.shared.ids);
        let decoder = self.wire.decoder(incoming.content_type(), self.shared.caps, ids);
        incoming.drop_headers();
        Ok(Phase::Read(Box::new(incoming), decoder))
    }

    /// Adds the address to a failure, and applies the configured words. Hides keys and tokens,
    /// which servers may repeat in error messages.
    fn addressed(&self, failure: AttemptError) -> AttemptError {
        let mut failure = reclassified(failure, &self.error_words);
        failure.error.address = Some(Arc::clone(&self.address));
        let secrets = self.secrets.iter().map(ExposeSecret::expose_secret);
        for secret in secrets.filter(|secret| !secret.is_empty()) {
            failure.error.message = failure.error.message.replace(secret, "[key]");
            failure.error.body = failure.error.body.map(|body| body.replace(secret, "[key]"));
        }
        failure
    }
}

/// Returns the address in a form that may be shown, without the query and the user, which may be
/// secret.
fn address(settings: &ProviderSettings, url: &Url) -> ModelAddress {
    let host = url.origin().ascii_serialization();
    ModelAddress {
        provider: settings.name.clone(),
        url: format!("{host}{}", url.path()),
        host,
    }
}

fn secrets(settings: &ProviderSettings) -> Vec<SecretString> {
    let credentials = settings.aws.credentials.as_ref();
    let aws = credentials.map(|aws| [Some(aws.secret_access_key.clone()), aws.session_token.clone()]);
    let all = aws.into_iter().flatten().chain([settings.api_key.clone()]);
    all.flatten().collect()
}

/// One attempt.
struct Call {
    provider: Arc<Provider>,
    request: Arc<ModelRequest>,
    phase: Phase,
}

enum Phase {
    Send(Url, HeaderMap, Bytes),
    Read(Box<Incoming>, Box<dyn Decoder>),
    End,
}

/// The events of one read, and the failure after them.
type News = (Vec<ModelEvent>, Option<AttemptError>);

impl Call {
    async fn next(&mut self) -> Option<News> {
        let mut events = Vec::new();
        let outcome = match std::mem::replace(&mut self.phase, Phase::End) {
            Phase::End => return None,
            // Boxed, so that its memory is free while the response arrives.
            Phase::Send(url, headers, body) => Box::pin(self.provider.send(url, headers, body)).await,
            Phase::Read(incoming, decoder) => read(incoming, decoder, &mut events).await,
        };
        let outcome = outcome.and_then(|phase| strays::check(&mut events, &self.request).map(|()| phase));
        let failure = match outcome {
            Ok(phase) => {
                self.phase = phase;
                None
            }
            Err(failure) => Some(self.provider.addressed(failure)),
        };
        Some((events, failure))
    }
}

async fn read(
    mut incoming: Box<Incoming>,
    mut decoder: Box<dyn Decoder>,
    events: &mut Vec<ModelEvent>,
) -> Result<Phase, AttemptError> {
    let next = incoming.next().await;
    let is_open = match next {
        Ok(Some(bytes)) => decoder.push(&bytes, events).map(|()| !decoder.is_done()),
        Ok(None) => decoder.finish(events).map(|()| false),
        // The completion is complete; only the end of the connection is missing.
        Err(_) if decoder.is_finished() => decoder.finish(events).map(|()| false),
        Err(failure) => Err(failure),
    };
    if is_open? {
        return Ok(Phase::Read(incoming, decoder));
    }
    incoming.drain().await;
    Ok(Phase::End)
}
