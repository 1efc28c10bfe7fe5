//! Makes the clients of servers with the chat completions API: their address and their dialect.

use std::sync::Arc;

use reqwest::Url;

use super::decoder::ChatDecoder;
use super::dialect::Dialect;
use super::request::encode_request;
use crate::address::{KeyHeader, Protocol, SettingsError, is_local};
use crate::capabilities::ProviderCapabilities;
use crate::client::{Decoder, HttpModel, Shared, Wire};
use crate::names::IdRule;
use crate::settings::{CapSettings, MaxTokensField, ProviderSettings};
use agent::ports::ModelRequest;
use values::ids::IdSource;

const PROTOCOL: Protocol = Protocol {
    base: "https://api.openai.com/v1",
    version: "",
    path: &["chat", "completions"],
    key: KeyHeader::Bearer,
    headers: &[],
};

/// Makes the client of a provider.
pub(crate) fn client(settings: &ProviderSettings, shared: Shared) -> Result<HttpModel, SettingsError> {
    HttpModel::new(settings, shared, &PROTOCOL, |url| dialect(settings, url))
}

impl Wire for Dialect {
    fn encode(&self, request: &ModelRequest, stream: bool) -> Vec<u8> {
        encode_request(request, self, stream)
    }

    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        let decoder = ChatDecoder::new(&self.provider, content_type, caps, ids);
        Box::new(if self.think_tags {
            decoder.splitting_think_tags()
        } else {
            decoder
        })
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
        // Mistral always reports usage and rejects unknown fields.
        stream_options: !mistral,
        refusal_field: openai,
        // The rules come from the servers' error messages. Other servers may require their own ids
        // unchanged.
        call_ids: match (openai, mistral) {
            (true, _) => IdRule::UpTo(40),
            (_, true) => IdRule::Nine,
            _ => IdRule::Any,
        },
        capabilities: ProviderCapabilities::new(settings, url),
        think_tags: settings.think_tags.unwrap_or_else(|| leaves_think_tags(url)),
    }
}

/// Returns whether the server usually leaves reasoning in the text of models such as Qwen and
/// `DeepSeek` R1. Most servers on this machine do.
fn leaves_think_tags(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    is_local(url) || ["api.groq.com", "api.together.xyz", "api.together.ai", "api.cerebras.ai"].contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProviderKind;

    #[test]
    fn the_address_decides_the_dialect_by_default() {
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
    fn servers_that_leave_thinking_in_the_text_are_known_by_default() {
        let mut settings = ProviderSettings::new("p", ProviderKind::OpenAiChat);
        for (base, known) in [
            ("https://api.groq.com/openai/v1", true),
            ("https://api.together.xyz/v1", true),
            ("https://api.cerebras.ai/v1", true),
            ("http://127.0.0.1:11434/v1", true),
            ("http://localhost:8000/v1", true),
            ("https://api.openai.com/v1", false),
            ("https://api.groq.com.example/v1", false),
        ] {
            let url = Url::parse(base).unwrap();
            settings.think_tags = None;
            assert_eq!(dialect(&settings, &url).think_tags, known, "{base}");
            settings.think_tags = Some(!known);
            assert_eq!(dialect(&settings, &url).think_tags, !known, "{base}");
        }
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
