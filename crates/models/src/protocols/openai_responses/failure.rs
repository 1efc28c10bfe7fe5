//! Turns errors inside a response into model errors. The protocol identifies them by codes, without
//! a status.

use crate::errors::error_of_frame;
use crate::fields::Fields;
use crate::retry::AttemptError;

/// Returns the failure for a failed response. Nothing else of the response is retained, since it
/// repeats the instructions.
pub(super) fn failure_of_response(response: &Fields<'_>) -> AttemptError {
    let error = response.get("error").map_or("{}", |error| error.get());
    error_of_frame(&format!("{{\"error\":{error}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::ports::ModelErrorClass as C;

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
            ("invalid_prompt", C::Policy, false),
            ("invalid_image_url", C::Invalid, false),
            ("image_too_large", C::Invalid, false),
            ("empty_image_file", C::Invalid, false),
            ("failed_to_download_image", C::Invalid, false),
            ("image_content_policy_violation", C::Policy, false),
            ("bio_policy", C::Policy, false),
            ("model_not_found", C::Invalid, false),
        ] {
            let error = serde_json::json!({"code": code, "message": "m"});
            let flat = serde_json::json!({"type": "error", "code": code, "message": "m", "param": null});
            let nested = serde_json::json!({"type": "error", "error": error}).to_string();
            let response =
                serde_json::json!({"status": "failed", "instructions": "hidden", "error": error}).to_string();
            for failure in [
                error_of_frame(&flat.to_string()),
                error_of_frame(&nested),
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
