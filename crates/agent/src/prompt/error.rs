//! The error of a prompt that can't be rendered.

use minijinja::ErrorKind;

/// The most bytes of a template, of a rendered prompt, and of a prompt with its instructions.
pub const MAX_PROMPT_BYTES: usize = 1 << 20;

/// A prompt that is an invalid template, exceeds a limit, or reads an undefined value.
#[derive(Debug, thiserror::Error)]
#[error("the system prompt can't be rendered: {message}")]
pub struct PromptError {
    /// The fault, with its line.
    message: String,
    /// The template engine's error.
    #[source]
    source: Option<minijinja::Error>,
}

impl PromptError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    pub(super) fn at(line: u16, words: &str) -> Self {
        Self::new(format!("line {line}: {words}"))
    }
}

impl From<minijinja::Error> for PromptError {
    fn from(source: minijinja::Error) -> Self {
        // Writing fails only if the rendered prompt is too large.
        let detail = match source.kind() {
            ErrorKind::WriteFailure => format!("it comes to more than {MAX_PROMPT_BYTES} bytes"),
            ErrorKind::OutOfFuel => "it takes too many steps".to_owned(),
            kind => source.detail().map_or_else(|| kind.to_string(), ToOwned::to_owned),
        };
        let message = source
            .line()
            .map_or_else(|| detail.clone(), |line| format!("line {line}: {detail}"));
        Self {
            message,
            source: Some(source),
        }
    }
}
