//! The script's form in a file, and the choice of a turn. No time, no events.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use agent::ports::ModelErrorClass;
use values::json::{Value, plain_words};

/// The built-in script.
const DEMO: &str = include_str!("../../../../config/scripts/demo.toml");

/// A script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The turns; the first that fits is played.
    #[serde(default, rename = "turn")]
    pub(super) turns: Vec<Turn>,
}

/// A script that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file can't be read.
    #[error("the script {} can't be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The text is not a script. The message names the file, the line and the fault.
    #[error("the script {name} is wrong: {problem}")]
    Parse {
        /// The file, or another name of the text.
        name: String,
        /// The location and the fault.
        problem: String,
    },
}

impl Script {
    /// Returns the built-in script.
    pub fn demo() -> Result<Self, ScriptError> {
        Self::parse("demo", DEMO)
    }

    /// Reads a script from a file.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(path).map_err(|source| ScriptError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Reads a script from a text; errors show the name.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let wrong = |problem: String| ScriptError::Parse {
            name: name.to_owned(),
            problem,
        };
        let read = toml::Deserializer::parse(text).and_then(Self::deserialize);
        let script = read.map_err(|error| wrong(plain_words(error.to_string().trim())))?;
        if script.turns.is_empty() {
            return Err(wrong("it has no [[turn]]".to_owned()));
        }
        Ok(script)
    }

    /// Returns the turn to play.
    pub(super) fn turn(&self, input: &str, step: usize) -> Option<&Turn> {
        let input = input.to_lowercase();
        self.turns.iter().find(|turn| {
            let events_of = turn
                .when
                .as_ref()
                .is_none_or(|when| input.contains(&when.to_lowercase()));
            events_of && turn.step.is_none_or(|wanted| wanted == step)
        })
    }
}

/// One completion of the script, and when it is played.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Turn {
    pub(super) when: Option<String>,
    pub(super) step: Option<usize>,
    pub(super) delay_ms: u64,
    pub(super) chunk_delay_ms: u64,
    pub(super) chunk_chars: Option<usize>,
    pub(super) reasoning: Option<String>,
    pub(super) text: Option<String>,
    pub(super) tool_calls: Vec<ScriptedCall>,
    pub(super) usage: Option<ScriptedUsage>,
    pub(super) finish_reason: Option<String>,
    pub(super) failure: Option<ScriptedError>,
}

/// A call that the script asks for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedCall {
    pub(super) name: String,
    /// An object, or a text that is sent as it is.
    #[serde(default)]
    pub(super) arguments: Value,
}

/// Usage that the script claims.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ScriptedUsage {
    #[serde(rename = "input_tokens")]
    pub(super) input: u64,
    #[serde(rename = "output_tokens")]
    pub(super) output: u64,
    #[serde(rename = "cache_read_tokens")]
    pub(super) cache_read: u64,
    #[serde(rename = "reasoning_tokens")]
    pub(super) reasoning: u64,
}

/// A failure that ends the turn.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedError {
    pub(super) class: ErrorClass,
    #[serde(default)]
    pub(super) status: Option<u16>,
    #[serde(default = "default_message")]
    pub(super) message: String,
    /// The pieces before it.
    #[serde(default)]
    pub(super) after_chunks: usize,
    #[serde(default)]
    pub(super) retry_after_ms: Option<u64>,
}

fn default_message() -> String {
    "the script says so".to_owned()
}

/// The class of a scripted failure, as it is written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ErrorClass {
    Auth,
    RateLimit,
    Overload,
    Context,
    Invalid,
    Server,
    Network,
    Timeout,
    Truncated,
    Protocol,
}

impl From<ErrorClass> for ModelErrorClass {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Auth => Self::Auth,
            ErrorClass::RateLimit => Self::RateLimit,
            ErrorClass::Overload => Self::Overload,
            ErrorClass::Context => Self::Context,
            ErrorClass::Invalid => Self::Invalid,
            ErrorClass::Server => Self::Server,
            ErrorClass::Network => Self::Network,
            ErrorClass::Timeout => Self::Timeout,
            ErrorClass::Truncated => Self::Truncated,
            ErrorClass::Protocol => Self::Protocol,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_script_is_an_error_that_names_the_file_and_the_location() {
        for (text, expected) in [
            ("", "the script x.toml is wrong: it has no [[turn]]"),
            ("[[turn]]\ntext = 1", "line 2, column 8"),
            ("turn = [3]", "expected an object"),
            ("[[turn]]\nusage = 1", "expected an object"),
            ("[[turn]]\ndelay_ms = 'long'", "expected an integer of 0 or more"),
            ("[[turn]]\ntxet = 'a'", "unknown field `txet`"),
            ("[[turn]]\nfailure = { class = 'bad' }", "unknown variant `bad`"),
            ("[[turn", "line 1"),
        ] {
            let error = Script::parse("x.toml", text).unwrap_err().to_string();
            assert!(
                error.starts_with("the script x.toml is wrong: ") && error.contains(expected),
                "{error}"
            );
        }
        let error = Script::read(Path::new("/nowhere/x.toml")).unwrap_err();
        assert_eq!(error.to_string(), "the script /nowhere/x.toml can't be read");
    }

    #[test]
    fn the_first_turn_that_fits_is_chosen() {
        let text = "
            [[turn]]\nwhen = 'Rain'\nstep = 0\ntext = 'a'
            [[turn]]\nwhen = 'rain'\ntext = 'b'
            [[turn]]\nstep = 1\ntext = 'c'
        ";
        let script = Script::parse("x", text).unwrap();
        let chosen = |input: &str, step| script.turn(input, step).and_then(|turn| turn.text.as_deref());
        assert_eq!(chosen("RAIN?", 0), Some("a"));
        assert_eq!(chosen("rain", 3), Some("b"));
        assert_eq!(chosen("sun", 1), Some("c"));
        assert_eq!(chosen("sun", 0), None);
    }
}
