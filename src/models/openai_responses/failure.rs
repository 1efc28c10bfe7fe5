//! Turns errors inside a response into model errors. The protocol identifies them by codes, without
//! a status.

use crate::agent::ports::ModelErrorClass;
use crate::models::errors::error_of_frame;
use crate::models::retry::AttemptError;
use crate::models::wire::Fields;

/// Returns the failure for an event that is an error or contains one.
pub(super) fn failure_of_event(text: &str) -> AttemptError {
    let event = Fields::parse(text).unwrap_or_default();
    let code = match event.object("error") {
        Some(error) => error.text("code").or_else(|| error.text("type")),
        None => event.text("code"),
    };
    coded(error_of_frame(text), &code.unwrap_or_default())
}

/// Returns the failure for a failed response. Nothing else of the response is retained, since it
/// repeats the instructions.
pub(super) fn failure_of_response(response: &Fields<'_>) -> AttemptError {
    let error = response.get("error").map_or("{}", |error| error.get());
    failure_of_event(&format!("{{\"error\":{error}}}"))
}

/// Classifies a failure by its code if neither its message nor a status determines the class.
fn coded(failure: AttemptError, code: &str) -> AttemptError {
    if failure.error.status.is_some() || failure.error.class != ModelErrorClass::Server {
        return failure;
    }
    let Some(class) = class_of(&code.to_ascii_lowercase()) else {
        return failure;
    };
    let mut error = failure.error;
    error.class = class;
    AttemptError::judged(error)
}

fn class_of(code: &str) -> Option<ModelErrorClass> {
    let refused = [
        "invalid_",
        "unsupported_",
        "unknown_",
        "image",
        "policy",
        "not_found",
        "content_filter",
    ];
    match code {
        "slow_down" => Some(ModelErrorClass::Overload),
        _ if code.starts_with("usage_") => Some(ModelErrorClass::RateLimit),
        _ if code.contains("timeout") => Some(ModelErrorClass::Timeout),
        _ if refused.iter().any(|word| code.contains(word)) => Some(ModelErrorClass::Invalid),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ModelErrorClass as C;

    use super::*;

    #[test]
    fn codes_reveal_the_class() {
        for (code, class, retryable) in [
            ("server_error", C::Server, true),
            ("something_new", C::Server, true),
            ("", C::Server, true),
            ("rate_limit_exceeded", C::RateLimit, true),
            ("insufficient_quota", C::RateLimit, false),
            ("usage_limit_reached", C::RateLimit, true),
            ("context_length_exceeded", C::Context, false),
            ("server_is_overloaded", C::Overload, true),
            ("slow_down", C::Overload, true),
            ("vector_store_timeout", C::Timeout, true),
            ("invalid_api_key", C::Auth, false),
            ("invalid_prompt", C::Invalid, false),
            ("invalid_image_url", C::Invalid, false),
            ("image_too_large", C::Invalid, false),
            ("empty_image_file", C::Invalid, false),
            ("failed_to_download_image", C::Invalid, false),
            ("image_content_policy_violation", C::Invalid, false),
            ("bio_policy", C::Invalid, false),
            ("model_not_found", C::Invalid, false),
        ] {
            let error = serde_json::json!({"code": code, "message": "m"});
            let flat = serde_json::json!({"type": "error", "code": code, "message": "m", "param": null});
            let nested = serde_json::json!({"type": "error", "error": error}).to_string();
            let response =
                serde_json::json!({"status": "failed", "instructions": "hidden", "error": error}).to_string();
            for failure in [
                failure_of_event(&flat.to_string()),
                failure_of_event(&nested),
                failure_of_response(&Fields::parse(&response).unwrap()),
            ] {
                assert_eq!((failure.error.class, failure.retryable), (class, retryable), "{code}");
                assert_eq!(failure.error.message, "m", "{code}");
                assert!(!failure.error.body.unwrap().contains("hidden"), "{code}");
            }
        }
    }

    #[test]
    fn a_failure_without_an_error_is_the_servers() {
        let failure = failure_of_response(&Fields::parse(r#"{"status": "failed", "error": null}"#).unwrap());
        assert_eq!((failure.error.class, failure.retryable), (C::Server, true));
        assert_eq!(failure.error.message, "the provider ended its response with an error");
    }
}
