//! The addresses of the Gemini API, its encoder and its decoder. The URL path names the model and
//! the method.

use std::sync::Arc;

use reqwest::Url;

use super::decoder::GeminiDecoder;
use super::encoder::encode_request;
use crate::address::{AddressRules, KeyHeader};
use crate::protocol::{Decoder, Dialect, Protocol, Wire};
use crate::settings::CapSettings;
use agent::ports::ModelRequest;
use values::ids::IdSource;

/// The protocol.
pub(crate) static PROTOCOL: Protocol = Protocol {
    address: AddressRules {
        base: "https://generativelanguage.googleapis.com",
        version: "v1beta",
        path: &[],
        key: KeyHeader::Named("x-goog-api-key"),
        headers: &[],
    },
    wire: |settings, url| Box::new(Gemini(Dialect::new(settings, url))),
};

/// The encoding for one provider.
#[derive(Debug)]
struct Gemini(Dialect);

impl Wire for Gemini {
    fn url(&self, base: &Url, request: &ModelRequest, stream: bool) -> Url {
        endpoint(base, &request.model, stream)
    }

    fn encode(&self, request: &ModelRequest, _stream: bool) -> Vec<u8> {
        encode_request(request, &self.0)
    }

    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        Box::new(GeminiDecoder::new(&self.0.provider, content_type, caps, ids))
    }
}

/// Adds the model and the method. A name with a slash names its collection itself, such as
/// `tunedModels/x`.
fn endpoint(base: &Url, model: &str, stream: bool) -> Url {
    let method = if stream {
        "streamGenerateContent"
    } else {
        "generateContent"
    };
    let mut url = base.clone();
    // This always succeeds, since the scheme is http or https.
    if let Ok(mut segments) = url.path_segments_mut() {
        let (collection, name) = model.rsplit_once('/').unwrap_or(("models", model));
        segments.pop_if_empty().extend(collection.split('/'));
        segments.push(&format!("{name}:{method}"));
    }
    if stream {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_and_the_method_stand_in_the_path() {
        let base: Url = "https://h/v1beta".parse().unwrap();
        for (model, stream, path) in [
            ("gemini-2.5-pro", false, "/v1beta/models/gemini-2.5-pro:generateContent"),
            (
                "gemini-2.5-pro",
                true,
                "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
            ),
            ("models/m", false, "/v1beta/models/m:generateContent"),
            ("tunedModels/m", false, "/v1beta/tunedModels/m:generateContent"),
            ("a b?c#d%", false, "/v1beta/models/a%20b%3Fc%23d%25:generateContent"),
            ("../../x", false, "/v1beta/x:generateContent"),
            ("..", false, "/v1beta/models/..:generateContent"),
        ] {
            let url = endpoint(&base, model, stream);
            assert_eq!(url.as_str(), format!("https://h{path}"), "{model}");
        }
    }
}
