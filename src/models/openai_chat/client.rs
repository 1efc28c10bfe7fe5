//! Joins the encoder and the decoder to the network: one request per attempt, events as they come.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::decoder::ChatDecoder;
use super::errors::error_of_response;
use super::request::{Dialect, encode_request};
use crate::agent::ports::{Model, ModelEvent, ModelRequest, ModelStream};
use crate::clock::Clock;
use crate::ids::IdSource;
use crate::models::retry::{Attempt, Failure, Retry};
use crate::models::settings::{CapSettings, MaxTokensField, ProviderSettings};
use crate::models::transport::{Incoming, Transport};

/// The address of the protocol's owner.
const OPENAI: &str = "https://api.openai.com/v1";
/// The most bytes that are read of an error's body.
const ERROR_BYTES: usize = 64 << 10;

/// Settings that lead to no client.
#[derive(Debug, thiserror::Error)]
pub enum ChatSettingsError {
    /// The address is not an HTTP URL.
    #[error("the base URL {url:?} is not an http or https URL")]
    BaseUrl {
        /// The address.
        url: String,
    },
    /// The name or value of a header can't be sent.
    #[error("the header {name:?} can't be sent: its name or value is malformed")]
    Header {
        /// The name.
        name: String,
    },
}

/// What the clients of all providers share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// The HTTP client.
    pub transport: Arc<Transport>,
    /// How calls are repeated.
    pub retry: Retry,
    /// Limits of answers.
    pub caps: CapSettings,
    /// Makes ids for calls that have none.
    pub ids: Arc<dyn IdSource>,
    /// Tells how far away a date is that a provider names.
    pub clock: Arc<dyn Clock>,
}

/// A provider that speaks chat completions.
#[derive(Debug)]
pub struct OpenAiChat {
    provider: Arc<Provider>,
}

#[derive(Debug)]
struct Provider {
    shared: Shared,
    url: Url,
    headers: HeaderMap,
    key: Option<SecretString>,
    dialect: Dialect,
    stream: bool,
}

impl OpenAiChat {
    /// Makes the client of a provider.
    pub fn new(settings: &ProviderSettings, shared: Shared) -> Result<Self, ChatSettingsError> {
        let url = endpoint(settings.base_url.as_deref().unwrap_or(OPENAI))?;
        let provider = Provider {
            headers: headers(settings)?,
            key: settings.api_key.clone(),
            dialect: dialect(settings, &url),
            stream: settings.stream,
            url,
            shared,
        };
        Ok(Self {
            provider: Arc::new(provider),
        })
    }
}

impl Model for OpenAiChat {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        let provider = Arc::clone(&self.provider);
        let body = Bytes::from(encode_request(&request, &provider.dialect, provider.stream));
        let retry = provider.shared.retry.clone();
        retry.run(move || provider.attempt(body.clone()))
    }
}

impl Provider {
    fn attempt(self: &Arc<Self>, body: Bytes) -> Attempt {
        let call = Call {
            provider: Arc::clone(self),
            phase: Phase::Send(body),
            events: VecDeque::new(),
            failure: None,
        };
        let next = |mut call: Call| async move { call.next().await.map(|item| (item, call)) };
        stream::unfold(call, next).boxed()
    }

    async fn send(&self, body: Bytes) -> Result<Phase, Failure> {
        let incoming = self
            .shared
            .transport
            .post(self.url.clone(), self.headers.clone(), body)
            .await?;
        let status = incoming.status();
        if !(200..300).contains(&status) {
            let retry_after = incoming.retry_after(self.shared.clock.now());
            let body = incoming.read_start(ERROR_BYTES).await;
            return Err(error_of_response(status, retry_after, &body));
        }
        let ids = Arc::clone(&self.shared.ids);
        let decoder = ChatDecoder::new(&self.dialect.provider, incoming.content_type(), self.shared.caps, ids);
        Ok(Phase::Read(Box::new((incoming, decoder))))
    }

    /// Servers may repeat the key in their complaint about it.
    fn without_key(&self, mut failure: Failure) -> Failure {
        let key = self.key.as_ref().map_or("", ExposeSecret::expose_secret);
        if !key.is_empty() {
            failure.error.message = failure.error.message.replace(key, "[key]");
            failure.error.body = failure.error.body.map(|body| body.replace(key, "[key]"));
        }
        failure
    }
}

/// One attempt.
struct Call {
    provider: Arc<Provider>,
    phase: Phase,
    events: VecDeque<ModelEvent>,
    failure: Option<Failure>,
}

enum Phase {
    Send(Bytes),
    Read(Box<(Incoming, ChatDecoder)>),
    End,
}

impl Call {
    async fn next(&mut self) -> Option<Result<ModelEvent, Failure>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            if let Some(failure) = self.failure.take() {
                return Some(Err(self.provider.without_key(failure)));
            }
            let outcome = match std::mem::replace(&mut self.phase, Phase::End) {
                Phase::End => return None,
                Phase::Send(body) => self.provider.send(body).await,
                Phase::Read(reading) => self.read(reading).await,
            };
            match outcome {
                Ok(phase) => self.phase = phase,
                Err(failure) => self.failure = Some(failure),
            }
        }
    }

    async fn read(&mut self, mut reading: Box<(Incoming, ChatDecoder)>) -> Result<Phase, Failure> {
        let (incoming, decoder) = &mut *reading;
        let mut events = Vec::new();
        let next = incoming.next().await;
        let outcome = match next {
            Ok(Some(bytes)) => decoder.push(&bytes, &mut events).map(|()| !decoder.is_done()),
            Ok(None) => decoder.finish(&mut events).map(|()| false),
            // All of the answer is there; only the connection's end is not.
            Err(_) if decoder.is_finished() => decoder.finish(&mut events).map(|()| false),
            Err(failure) => Err(failure),
        };
        self.events.extend(events);
        if outcome? {
            return Ok(Phase::Read(reading));
        }
        incoming.drain().await;
        Ok(Phase::End)
    }
}

fn endpoint(base: &str) -> Result<Url, ChatSettingsError> {
    let wrong = || ChatSettingsError::BaseUrl { url: base.to_owned() };
    let mut url = Url::parse(base).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong());
    }
    if !url.path().trim_end_matches('/').ends_with("/chat/completions") {
        let mut path = url.path_segments_mut().map_err(|()| wrong())?;
        path.pop_if_empty().extend(["chat", "completions"]);
    }
    Ok(url)
}

fn headers(settings: &ProviderSettings) -> Result<HeaderMap, ChatSettingsError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let accept = if settings.stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    if let Some(key) = &settings.api_key {
        headers.insert(
            AUTHORIZATION,
            sensitive("authorization", &format!("Bearer {}", key.expose_secret()))?,
        );
    }
    for (name, value) in &settings.headers {
        let key =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| ChatSettingsError::Header { name: name.clone() })?;
        headers.insert(key, sensitive(name, value)?);
    }
    Ok(headers)
}

fn sensitive(name: &str, value: &str) -> Result<HeaderValue, ChatSettingsError> {
    let value = HeaderValue::from_str(value);
    let mut value = value.map_err(|_| ChatSettingsError::Header { name: name.to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}

fn dialect(settings: &ProviderSettings, url: &Url) -> Dialect {
    let host = url.host_str().unwrap_or_default();
    let openai = host == "api.openai.com" || host.ends_with(".openai.azure.com");
    let field = if openai {
        MaxTokensField::MaxCompletionTokens
    } else {
        MaxTokensField::MaxTokens
    };
    Dialect {
        provider: settings.name.clone(),
        max_tokens_field: settings.max_tokens_field.unwrap_or(field),
        max_output_tokens: settings.max_output_tokens,
        // Mistral counts unasked and refuses fields that it does not know.
        stream_options: host != "api.mistral.ai",
        refusal_field: openai,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::models::ProviderKind;

    #[test]
    fn the_path_is_joined_to_any_base() {
        for (base, url) in [
            (
                "https://api.openai.com/v1",
                "https://api.openai.com/v1/chat/completions",
            ),
            (
                "http://127.0.0.1:11434/v1/",
                "http://127.0.0.1:11434/v1/chat/completions",
            ),
            ("http://h", "http://h/chat/completions"),
            (
                "https://h/openai?api-version=1",
                "https://h/openai/chat/completions?api-version=1",
            ),
            ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ] {
            assert_eq!(endpoint(base).unwrap().as_str(), url);
        }
        for base in ["", "h", "ftp://h/", "data:,x", "http://"] {
            assert!(endpoint(base).is_err(), "{base}");
        }
    }

    #[test]
    fn the_address_decides_the_dialect_unless_told() {
        let mut settings = ProviderSettings::new("p", ProviderKind::OpenAiChat);
        let field =
            |settings: &ProviderSettings, base: &str| dialect(settings, &endpoint(base).unwrap()).max_tokens_field;
        assert_eq!(
            field(&settings, "https://api.openai.com/v1"),
            MaxTokensField::MaxCompletionTokens
        );
        assert_eq!(
            field(&settings, "https://api.groq.com/openai/v1"),
            MaxTokensField::MaxTokens
        );
        settings.max_tokens_field = Some(MaxTokensField::MaxCompletionTokens);
        assert_eq!(
            field(&settings, "https://api.groq.com/openai/v1"),
            MaxTokensField::MaxCompletionTokens
        );
    }

    #[test]
    fn the_key_is_never_shown() {
        let mut settings = ProviderSettings::new("p", ProviderKind::OpenAiChat);
        settings.api_key = Some("sk-secret".into());
        settings.headers = BTreeMap::from([("x-extra".to_owned(), "hidden".to_owned())]);
        let shown = format!("{:?} {:?}", settings, headers(&settings).unwrap());
        assert!(!shown.contains("sk-secret") && !shown.contains("hidden"), "{shown}");
        settings.api_key = Some("a\nb".into());
        assert_eq!(
            headers(&settings).unwrap_err().to_string(),
            "the header \"authorization\" can't be sent: its name or value is malformed"
        );
    }
}
