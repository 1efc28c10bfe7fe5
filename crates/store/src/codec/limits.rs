//! Encodes and decodes the limits of API keys: JSON with a version. Decoding fails if this version
//! of the service does not know a limit, since it could not enforce that limit.

use serde::{Deserialize, Serialize};

use values::limits::RunLimits;

/// The version of the JSON format.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    limits: T,
}

/// The error of decoding stored limits.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LimitsError {
    #[error("the limits are stored in the form {0}, which a newer version of agent-runtime has made")]
    Newer(u32),
    #[error("the limits can't be read")]
    Json(#[from] serde_json::Error),
}

/// Encodes limits as JSON; returns `None` if no limit is set.
pub(crate) fn encode_limits(limits: &RunLimits) -> Result<Option<String>, serde_json::Error> {
    if limits.is_empty() {
        return Ok(None);
    }
    serde_json::to_string(&Versioned {
        version: VERSION,
        limits,
    })
    .map(Some)
}

/// Decodes stored limits; `None` means no limits.
pub(crate) fn decode_limits(stored: Option<&str>) -> Result<RunLimits, LimitsError> {
    let Some(json) = stored else {
        return Ok(RunLimits::default());
    };
    let Versioned { version, limits } = serde_json::from_str::<Versioned<serde_json::Value>>(json)?;
    if version > VERSION {
        return Err(LimitsError::Newer(version));
    }
    Ok(serde_json::from_value(limits)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_limit_is_ignored() {
        assert_eq!(encode_limits(&RunLimits::default()).unwrap(), None);
        assert_eq!(decode_limits(None).unwrap(), RunLimits::default());
        let limits = RunLimits {
            max_steps: Some(3),
            ..RunLimits::default()
        };
        let json = r#"{"version":1,"limits":{"max_steps":3}}"#;
        assert_eq!(encode_limits(&limits).unwrap().as_deref(), Some(json));
        assert_eq!(decode_limits(Some(json)).unwrap(), limits);
        let newer = r#"{"version":2,"limits":{"max_moons":3}}"#;
        assert!(matches!(decode_limits(Some(newer)), Err(LimitsError::Newer(2))));
        let unknown = r#"{"version":1,"limits":{"max_moons":3}}"#;
        assert!(matches!(decode_limits(Some(unknown)), Err(LimitsError::Json(_))));
    }
}
