//! Errors of many servers, each with its class.

use agent::ports::ModelErrorClass;
use serde::Deserialize;

/// An error of a server.
#[derive(Debug, Clone, Deserialize)]
pub struct ErrorAnswer {
    /// The server, for people.
    #[expect(dead_code, reason = "messages of failed tests show it")]
    server: String,
    pub status: u16,
    pub body: String,
    #[serde(deserialize_with = "class")]
    pub class: ModelErrorClass,
}

/// Returns the errors of `error-answers.json`.
pub fn error_answers() -> Vec<ErrorAnswer> {
    serde_json::from_str(include_str!("error-answers.json")).unwrap()
}

fn class<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ModelErrorClass, D::Error> {
    use ModelErrorClass as C;
    let name = String::deserialize(deserializer)?;
    let classes = [
        C::Auth,
        C::RateLimit,
        C::Overload,
        C::Context,
        C::Invalid,
        C::Policy,
        C::Server,
        C::Timeout,
    ];
    let class = classes.into_iter().find(|class| format!("{class:?}") == name);
    class.ok_or_else(|| serde::de::Error::custom(format!("no class is named {name}")))
}
