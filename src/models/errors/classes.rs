//! The class of an error: its codes first, then its shape, then phrases, and the status last. Each
//! entry names the servers that it is known from.
//!
//! A new entry is the last resort. Most servers that find a request too long say so in words of
//! their own, and [`is_too_long`] recognises them without a list.

use super::details::Details;
use crate::agent::ports::ModelErrorClass as Class;

/// Parts of codes, in lower case and without punctuation.
const CODES: [(Class, &str, &str); 46] = [
    (Class::RateLimit, "ratelimit", "OpenAI, Anthropic, Groq, Mistral"),
    (Class::RateLimit, "insufficientquota", "OpenAI"),
    (Class::RateLimit, "quotaexceeded", "Azure, Bedrock"),
    (Class::RateLimit, "billing", "OpenAI, Anthropic"),
    (Class::RateLimit, "toomanyrequests", "Bedrock, Azure, Together"),
    (Class::RateLimit, "throttl", "Bedrock, DashScope"),
    (Class::RateLimit, "resourceexhausted", "Gemini, Vertex AI"),
    (Class::RateLimit, "usagelimit", "OpenAI"),
    (Class::RateLimit, "usagenot", "OpenAI"),
    (Class::RateLimit, "arrearage", "DashScope"),
    (Class::Context, "contextlength", "OpenAI, Azure, Groq, Cerebras"),
    (Class::Context, "contextwindow", "LiteLLM, MiniMax"),
    (Class::Context, "exceedcontext", "llama.cpp"),
    (Class::Context, "prompttokensexceeded", "GitHub Copilot"),
    (Class::Context, "tokenslimitreached", "GitHub Models"),
    (Class::Context, "requesttoolarge", "Anthropic"),
    (Class::Overload, "overloaded", "Anthropic, Moonshot, OpenAI"),
    (Class::Overload, "serverbusy", "Together"),
    (Class::Overload, "slowdown", "OpenAI"),
    (Class::Overload, "capacityexceeded", "Mistral"),
    (Class::Overload, "modelnotready", "Bedrock"),
    (Class::Overload, "serviceunavailable", "Bedrock, Azure"),
    (Class::Policy, "contentfilter", "OpenAI, Azure"),
    (Class::Policy, "policy", "OpenAI, Azure"),
    (Class::Policy, "moderation", "OpenAI"),
    (Class::Policy, "invalidprompt", "OpenAI"),
    (Class::Policy, "guardrail", "Bedrock, LiteLLM"),
    (Class::Policy, "datainspectionfailed", "DashScope"),
    (Class::Policy, "prohibitedcontent", "Gemini"),
    (Class::Auth, "invalidapikey", "OpenAI, Groq, DashScope"),
    (Class::Auth, "apikeyinvalid", "Gemini"),
    (Class::Auth, "authentication", "Anthropic, DeepSeek"),
    (Class::Auth, "permissionerror", "Anthropic"),
    (Class::Auth, "permissiondenied", "Gemini, Vertex AI, Azure"),
    (Class::Auth, "unauthenticated", "Gemini, Vertex AI"),
    (Class::Auth, "unauthorized", "Cohere, NVIDIA NIM"),
    (Class::Auth, "accessdenied", "Bedrock"),
    (Class::Auth, "unrecognizedclient", "Bedrock"),
    (Class::Auth, "expiredtoken", "Bedrock"),
    (Class::Auth, "invalidsignature", "Bedrock"),
    (Class::Timeout, "timeout", "Anthropic, Bedrock"),
    (Class::Timeout, "deadlineexceeded", "Gemini, Vertex AI"),
    (Class::RateLimit, "1302", "Zhipu"),
    (Class::Overload, "1305", "Zhipu"),
    (Class::Context, "1261", "Zhipu"),
    (Class::Policy, "1301", "Zhipu"),
];

/// Parts of codes of permanent errors, for errors without a status.
const REFUSALS: [&str; 8] = [
    "invalid",
    "badrequest",
    "notfound",
    "validation",
    "unsupported",
    "unknown",
    "image",
    "unprocessable",
];

/// Phrases in lower case.
const PHRASES: [(Class, &str, &str); 41] = [
    (Class::Context, "expected maxlength", "Bedrock"),
    (Class::Context, "max tokens of", "Snowflake Cortex"),
    (Class::Context, "maximum length 1048576", "OpenAI"),
    (Class::Context, "cannot truncate prompt", "llama.cpp"),
    (Class::RateLimit, "per minute", "Groq, OpenAI"),
    (Class::RateLimit, "tokens per min", "OpenAI"),
    (Class::RateLimit, "requests per", "OpenAI, Cloudflare"),
    (Class::RateLimit, "per day", "Bedrock, Groq"),
    (Class::RateLimit, "rate limit", "OpenRouter, Cohere, Mistral"),
    (Class::RateLimit, "too many requests", "Perplexity, Together, Azure"),
    (Class::RateLimit, "please wait before trying", "Bedrock"),
    (Class::RateLimit, "increased too quickly", "DashScope"),
    (Class::RateLimit, "credit balance", "Anthropic"),
    (Class::RateLimit, "insufficient balance", "DeepSeek, Moonshot"),
    (Class::RateLimit, "insufficient credits", "OpenRouter"),
    (Class::RateLimit, "exceeded your current quota", "OpenAI, Gemini"),
    (Class::RateLimit, "quota exceeded", "Vertex AI, AI21"),
    (Class::Overload, "overloaded", "OpenAI, Fireworks, Gemini"),
    (Class::Overload, "at capacity", "Anthropic, Perplexity"),
    (Class::Overload, "over capacity", "Groq"),
    (Class::Overload, "no capacity", "Cloudflare"),
    (Class::Overload, "capacity temporarily exceeded", "Cloudflare"),
    (Class::Overload, "high demand", "Gemini, SambaNova"),
    (Class::Overload, "high traffic", "Cerebras"),
    (Class::Overload, "server is busy", "DeepSeek, Ollama"),
    (Class::Overload, "currently loading", "Hugging Face"),
    (Class::Overload, "no healthy upstream", "Envoy before vLLM"),
    (Class::Policy, "content management policy", "Azure"),
    (Class::Policy, "content filtering policy", "Anthropic"),
    (Class::Policy, "content policy", "OpenAI, xAI"),
    (Class::Policy, "usage polic", "OpenAI, Anthropic"),
    (Class::Policy, "content safety", "xAI, Hunyuan"),
    (Class::Policy, "safety system", "OpenAI"),
    (Class::Policy, "flagged", "OpenRouter, Together"),
    (Class::Policy, "inappropriate content", "DashScope"),
    (Class::Policy, "content exists risk", "DeepSeek"),
    (Class::Policy, "considered high risk", "Moonshot"),
    (Class::Auth, "invalid api key", "Groq, Mistral"),
    (Class::Auth, "incorrect api key", "OpenAI, xAI"),
    (Class::Auth, "api key not valid", "Gemini"),
    (Class::Timeout, "timed out", "vLLM, Ollama"),
];

/// Codes and phrases of a quota that is used up: another attempt does not help.
const NO_QUOTA: [&str; 8] = [
    "insufficientquota",
    "quotaexceeded",
    "billing",
    "arrearage",
    "credit balance",
    "insufficient balance",
    "insufficient credits",
    "exceeded your current quota",
];

/// Names of limits of a completion, and names of fields. They say nothing about the length of the
/// conversation.
const OTHER_SUBJECTS: [&str; 18] = [
    "token limit reached",
    "in context=",
    "context_management",
    "prompt_cache",
    "conversation_id",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "maxoutputtokens",
    "maxtokens",
    "max tokens",
    "maximum tokens",
    "budget_tokens",
    "thinking budget",
    "output tokens",
    "completion tokens",
    "thinking tokens",
];
/// What can be too long.
const SUBJECTS: [&str; 10] = [
    "token",
    "context",
    "prompt",
    "input length",
    "input is",
    "`inputs`",
    "length of the messages",
    "sequence length",
    "conversation",
    "chat history",
];
/// How it is said to be too long.
const EXCESSES: [&str; 22] = [
    "exceed",
    "longer than",
    "too long",
    "too large",
    "too big",
    "too many",
    "limit",
    "maximum",
    "max length",
    "max input",
    "max context",
    "less than",
    "<=",
    "greater than",
    "larger than",
    "more than",
    "overflow",
    "not enough",
    "range of input",
    "only supports",
    "up to",
    "reached",
];
/// Words about amounts per time, times and credentials, which have limits of their own.
const OF_TIME: [&str; 17] = [
    "per minute",
    "per min",
    "per second",
    "per hour",
    "per day",
    "daily",
    "monthly",
    "(tpm)",
    "rate limit",
    "rate-limit",
    "quota",
    "credit",
    "please wait",
    "deadline",
    "timeout",
    "time limit",
    "timed out",
];

/// Returns the class of an error.
pub(super) fn class_of(details: &Details, status: Option<u16>) -> Class {
    let codes: Vec<_> = details.codes.iter().map(|code| plain(code)).collect();
    let has_code = |part: &str| {
        let is_number = part.bytes().all(|digit| digit.is_ascii_digit());
        codes
            .iter()
            .any(|code| if is_number { code == part } else { code.contains(part) })
    };
    let by_code = CODES
        .iter()
        .find(|(_, part, _)| has_code(part))
        .map(|(class, ..)| *class);
    let by_shape = || (may_be_context(status) && is_too_long(&details.words)).then_some(Class::Context);
    let by_phrase = || {
        let mut phrases = PHRASES.iter();
        phrases
            .find(|(_, phrase, _)| details.words.contains(phrase))
            .map(|(class, ..)| *class)
    };
    by_code
        .or_else(by_shape)
        .or_else(by_phrase)
        .unwrap_or_else(|| match status {
            Some(401 | 403) => Class::Auth,
            Some(402 | 429) => Class::RateLimit,
            Some(408 | 504 | 524) => Class::Timeout,
            Some(413) => Class::Context,
            Some(503 | 529) => Class::Overload,
            Some(409 | 424 | 500..=599) => Class::Server,
            Some(400..=499) => Class::Invalid,
            Some(_) => Class::Protocol,
            None if REFUSALS.iter().any(|part| has_code(part)) => Class::Invalid,
            None => Class::Server,
        })
}

/// Returns whether a quota is used up, so that another attempt does not help.
pub(super) fn lacks_quota(details: &Details) -> bool {
    let is_named =
        |part: &&str| details.words.contains(*part) || details.codes.iter().any(|code| plain(code).contains(*part));
    NO_QUOTA.iter().any(is_named)
}

/// Returns whether a status does not contradict a request that is too long.
fn may_be_context(status: Option<u16>) -> bool {
    status.is_none_or(|status| matches!(status, 400 | 413 | 422 | 424 | 500 | 501 | 502))
}

/// Returns whether words say that the conversation is too long: something with a length exceeds
/// something. Limits of a completion and amounts per time do not count.
fn is_too_long(words: &str) -> bool {
    let is_any = |words: &str, parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let of_input = OTHER_SUBJECTS
        .iter()
        .fold(words.to_owned(), |words, name| words.replace(name, ""));
    is_any(&of_input, &SUBJECTS) && is_any(words, &EXCESSES) && !is_any(words, &OF_TIME)
}

/// Returns a code in lower case without punctuation, so that all spellings are one.
fn plain(code: &str) -> String {
    let letters = code.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}
