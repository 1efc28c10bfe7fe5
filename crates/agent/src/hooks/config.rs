//! Parses the configuration of a hook and reports where it is wrong.

use serde::de::DeserializeOwned;

use values::json::{Object, Value, plain_words};

/// Reads the configuration of a hook; an error names the key.
pub fn read_config<T: DeserializeOwned>(config: &Object) -> Result<T, String> {
    serde_path_to_error::deserialize(Value::Object(config.clone())).map_err(|error| {
        let path = error.path().to_string();
        let fault = plain_words(&error.into_inner().to_string());
        if path == "." { fault } else { format!("{path}: {fault}") }
    })
}

/// Returns the message where the condition does not hold.
pub(crate) fn ensure(holds: bool, message: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message.into()) }
}
