//! The configuration of compilers: which one an agent uses, and its options.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Compiler, LastN, Sections, TokenWindow, Traces};
use values::message::Section;

/// The compiler that an agent uses, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum CompilerConfig {
    /// The conversation.
    Conversation {},
    /// The messages of all sections.
    AllSections {},
    /// The messages of some sections.
    Sections {
        /// The sections; `messages`, the conversation itself, is one of them.
        names: Vec<Section>,
    },
    /// The newest turns of the conversation. The prefix of requests is not stable.
    LastN {
        /// The most messages; the newest turn is always sent.
        #[schema(minimum = 1)]
        messages: u32,
    },
    /// The newest messages of the conversation that fit a size. The prefix of requests is not
    /// stable.
    TokenWindow {
        /// The most tokens, estimated, the system prompt and the summary counted.
        #[schema(minimum = 1)]
        max_tokens: u64,
    },
}

impl Default for CompilerConfig {
    fn default() -> Self {
        Self::Conversation {}
    }
}

impl CompilerConfig {
    /// Checks the values. The error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Sections { names } => check_names(names),
            Self::LastN { messages: 0 } => Err("messages is not at least 1".to_owned()),
            Self::TokenWindow { max_tokens: 0 } => Err("max_tokens is not at least 1".to_owned()),
            Self::Conversation {} | Self::AllSections {} | Self::LastN { .. } | Self::TokenWindow { .. } => Ok(()),
        }
    }

    /// Makes the compiler, with the traces of earlier executions that the agent wants.
    pub fn compiler(&self, traces: Traces) -> Arc<dyn Compiler> {
        match self {
            Self::Conversation {} => Arc::new(Sections::conversation(traces)),
            Self::AllSections {} => Arc::new(Sections::all(traces)),
            Self::Sections { names } => Arc::new(Sections::named(names.iter().cloned(), traces)),
            Self::LastN { messages } => Arc::new(LastN::new(*messages as usize, traces)),
            Self::TokenWindow { max_tokens } => Arc::new(TokenWindow::new(*max_tokens, traces)),
        }
    }
}

fn check_names(names: &[Section]) -> Result<(), String> {
    if let Some(name) = names.iter().find(|name| !name.is_valid()) {
        return Err(format!("{:?} is no section: {}", name.as_str(), Section::RULE));
    }
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        return Err("a section is named twice".to_owned());
    }
    if !names.iter().any(Section::is_messages) {
        return Err("without the section `messages` the model would not read what it is asked".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(config: Value) -> Result<CompilerConfig, String> {
        let config: CompilerConfig = serde_json::from_value(config).map_err(|error| error.to_string())?;
        config.check().map(|()| config)
    }

    #[test]
    fn configurations_are_read_and_written() {
        for config in [
            json!({"kind": "conversation"}),
            json!({"kind": "all_sections"}),
            json!({"kind": "sections", "names": ["messages", "buffer"]}),
            json!({"kind": "last_n", "messages": 20}),
            json!({"kind": "token_window", "max_tokens": 8000}),
        ] {
            let read = read(config.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), config);
            assert_eq!(read == CompilerConfig::default(), config["kind"] == "conversation");
        }
    }
}
