//! Makes the clients of servers that speak chat completions: where they are, and in which accent they are spoken to.

use std::sync::Arc;

use reqwest::Url;

use super::decoder::ChatDecoder;
use super::request::{Dialect, encode_request};
use crate::agent::ports::ModelRequest;
use crate::ids::IdSource;
use crate::models::address::{KeyHeader, Protocol, SettingsError};
use crate::models::client::{Decoder, HttpModel, Shared, Wire};
use crate::models::names::IdRule;
use crate::models::settings::{CapSettings, MaxTokensField, ProviderSettings};

const PROTOCOL: Protocol = Protocol {
    base: "https://api.openai.com/v1",
    version: "",
    path: &["chat", "completions"],
    key: KeyHeader::Bearer,
    headers: &[],
};

/// Makes the client of a provider.
pub(in crate::models) fn client(settings: &ProviderSettings, shared: Shared) -> Result<HttpModel, SettingsError> {
    HttpModel::new(settings, shared, &PROTOCOL, |url| dialect(settings, url))
}

impl Wire for Dialect {
    fn encode(&self, request: &ModelRequest, stream: bool) -> Vec<u8> {
        encode_request(request, self, stream)
    }

    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        Box::new(ChatDecoder::new(&self.provider, content_type, caps, ids))
    }
}

fn dialect(settings: &ProviderSettings, url: &Url) -> Dialect {
    let host = url.host_str().unwrap_or_default();
    let openai = host == "api.openai.com" || host.ends_with(".openai.azure.com");
    let mistral = host == "api.mistral.ai";
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
        stream_options: !mistral,
        refusal_field: openai,
        // What they said when they refused others. Elsewhere an id may hold what its server needs, so it goes back as it came.
        call_ids: match (openai, mistral) {
            (true, _) => IdRule::UpTo(40),
            (_, true) => IdRule::Nine,
            _ => IdRule::Any,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ProviderKind;

    #[test]
    fn the_address_decides_the_dialect_unless_told() {
        let mut settings = ProviderSettings::new("p", ProviderKind::OpenAiChat);
        let field =
            |settings: &ProviderSettings, base: &str| dialect(settings, &Url::parse(base).unwrap()).max_tokens_field;
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
    fn ids_of_calls_go_back_as_they_came_unless_the_server_refuses_some() {
        let settings = ProviderSettings::new("p", ProviderKind::OpenAiChat);
        for (base, rule) in [
            ("https://api.openai.com/v1", IdRule::UpTo(40)),
            ("https://x.openai.azure.com/openai", IdRule::UpTo(40)),
            ("https://api.mistral.ai/v1", IdRule::Nine),
            ("https://api.groq.com/openai/v1", IdRule::Any),
        ] {
            assert_eq!(dialect(&settings, &Url::parse(base).unwrap()).call_ids, rule, "{base}");
        }
    }
}
