//! The `kind` of a provider to write instead of a name that many would try first.

/// Returns which `kind` to write instead of the name of a provider. `problem` is the error of the
/// unknown kind.
pub(super) fn kind_hint(path: &[String], problem: &str) -> Option<&'static str> {
    if !matches!(path, [table, _, key] if table == "providers" && key == "kind") {
        return None;
    }
    Some(match problem.split('`').nth(1)?.to_lowercase().as_str() {
        "openai" => "; write `openai_responses`, or `openai_chat` for chat completions",
        "azure" | "azure_openai" | "openai_compatible" | "openrouter" | "ollama" | "vllm" | "lmstudio" | "litellm"
        | "groq" | "together" | "fireworks" | "deepseek" | "mistral" | "xai" | "grok" | "cerebras" => {
            "; write `openai_chat`, which this server offers, and its `base_url`"
        }
        "claude" => "; write `anthropic`",
        "google" | "vertex" | "vertexai" | "vertex_ai" => "; write `gemini`",
        "aws" | "amazon" => "; write `bedrock`",
        _ => return None,
    })
}
