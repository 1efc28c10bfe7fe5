//! The addresses of Amazon Bedrock, its encoder and its decoder. The URL path names the model and
//! the method. Requests without an API key are signed.

use std::sync::Arc;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::HeaderMap;

use super::decoder::ConverseDecoder;
use super::encoder::encode_request;
use super::signature::add_signature;
use crate::address::{AddressRules, KeyHeader};
use crate::protocol::{Decoder, Dialect, Protocol, Wire};
use crate::retry::AttemptError;
use crate::settings::{AwsSettings, CapSettings};
use agent::ports::{ModelError, ModelErrorClass, ModelRequest, StructuredOutput};
use values::clock::Timestamp;
use values::ids::IdSource;

/// The protocol.
pub(crate) static PROTOCOL: Protocol = Protocol {
    address: AddressRules {
        base: "https://bedrock-runtime.{region}.amazonaws.com",
        version: "",
        path: &[],
        key: KeyHeader::Bearer,
        headers: &[("accept", "application/vnd.amazon.eventstream, application/json")],
    },
    wire: |settings, url| {
        Box::new(Converse {
            dialect: Dialect::new(settings, url),
            aws: settings.aws.clone(),
            has_key: settings.api_key.is_some(),
        })
    },
};

/// The characters that are percent-encoded in a path segment.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The encoding for one account.
#[derive(Debug)]
struct Converse {
    dialect: Dialect,
    aws: AwsSettings,
    has_key: bool,
}

impl Wire for Converse {
    fn url(&self, base: &Url, request: &ModelRequest, stream: bool) -> Url {
        endpoint(base, &request.model, stream)
    }

    fn encode(&self, request: &ModelRequest, _stream: bool) -> Vec<u8> {
        encode_request(request, &self.dialect)
    }

    fn authorize(&self, headers: &mut HeaderMap, url: &Url, body: &Bytes, now: Timestamp) -> Result<(), AttemptError> {
        let Some(credentials) = self.aws.credentials.as_ref().filter(|_| !self.has_key) else {
            return Ok(());
        };
        add_signature(headers, url, body, &self.aws.region, credentials, now.into()).map_err(|error| {
            AttemptError::permanent(ModelError {
                source: Some(Arc::new(error)),
                ..ModelError::new(ModelErrorClass::Auth, "the request can't be signed")
            })
        })
    }

    fn decoder(&self, _: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        Box::new(ConverseDecoder::of_aws(&self.dialect.provider, caps, ids))
    }

    /// Returns the form of structured output. Few models follow a schema in the request, but all
    /// models with tools can call a tool.
    fn structured_output(&self) -> StructuredOutput {
        StructuredOutput::Tool
    }
}

/// Adds the model and the method to the address of the service. The model is one segment, even if
/// its name has slashes. Names of profiles have colons and slashes.
pub(super) fn endpoint(base: &Url, model: &str, stream: bool) -> Url {
    let mut url = base.clone();
    let model = utf8_percent_encode(model, ENCODED);
    let method = if stream { "converse-stream" } else { "converse" };
    let path = format!("{}/model/{model}/{method}", base.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}
