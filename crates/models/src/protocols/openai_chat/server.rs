//! The servers of this protocol, as far as they differ.

use reqwest::Url;

use crate::address::is_local;
use crate::names::IdRule;

/// A server whose rules differ from those of all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// OpenAI, and OpenAI's models at Azure.
    OpenAi,
    /// Mistral.
    Mistral,
    /// Any other server.
    Other,
}

impl Server {
    /// Returns the server at an address.
    pub(super) fn at(url: &Url) -> Self {
        match url.host_str().unwrap_or_default() {
            "api.mistral.ai" => Self::Mistral,
            host if host == "api.openai.com" || host.ends_with(".openai.azure.com") => Self::OpenAi,
            _ => Self::Other,
        }
    }

    /// Returns whether the field `max_completion_tokens` limits the output tokens. Newer models of
    /// OpenAI require it, and most servers understand only `max_tokens`.
    pub(super) fn has_completion_limit(self) -> bool {
        self == Self::OpenAi
    }

    /// Returns whether a refusal has a separate field. Otherwise it is sent back as text.
    pub(super) fn has_refusal_field(self) -> bool {
        self == Self::OpenAi
    }

    /// Returns whether a request must ask for usage in a stream. Mistral always reports usage and
    /// rejects unknown fields.
    pub(super) fn has_stream_options(self) -> bool {
        self != Self::Mistral
    }

    /// Returns the ids of calls that the server accepts. The rules come from the servers' error
    /// messages. Other servers may require their own ids unchanged.
    pub(super) fn call_ids(self) -> IdRule {
        match self {
            Self::OpenAi => IdRule::UpTo(40),
            Self::Mistral => IdRule::Nine,
            Self::Other => IdRule::Any,
        }
    }
}

/// Returns whether the server usually leaves reasoning in the text of models such as Qwen and
/// `DeepSeek` R1. Most servers on this machine do.
pub(super) fn leaves_think_tags(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    is_local(url) || ["api.groq.com", "api.together.xyz", "api.together.ai", "api.cerebras.ai"].contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_decides_which_server_it_is() {
        for (base, server, has_tags) in [
            ("https://api.openai.com/v1", Server::OpenAi, false),
            ("https://x.openai.azure.com/openai", Server::OpenAi, false),
            ("https://api.mistral.ai/v1", Server::Mistral, false),
            ("https://api.groq.com/openai/v1", Server::Other, true),
            ("https://api.together.xyz/v1", Server::Other, true),
            ("https://api.cerebras.ai/v1", Server::Other, true),
            ("http://127.0.0.1:11434/v1", Server::Other, true),
            ("http://localhost:8000/v1", Server::Other, true),
            ("https://api.groq.com.example/v1", Server::Other, false),
        ] {
            let url = Url::parse(base).unwrap();
            assert_eq!(
                (Server::at(&url), leaves_think_tags(&url)),
                (server, has_tags),
                "{base}"
            );
        }
    }
}
