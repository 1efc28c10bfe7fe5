//! The settings that bound tool calls.

use std::time::Duration;

use serde::Deserialize;

use values::settings::{duration, integer};

/// Limits of tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct CallLimits {
    /// The most calls of one step that run concurrently.
    #[serde(rename = "tool_concurrency", deserialize_with = "integer::<_, 1, 1_024, _>")]
    pub concurrency: usize,
    /// The most calls of one step that are executed.
    #[serde(rename = "max_calls_per_step", deserialize_with = "integer::<_, 1, 1_024, _>")]
    pub max_calls: usize,
    /// The timeout of one call, unless its tool overrides it.
    #[serde(rename = "tool_timeout", deserialize_with = "duration::<1, 86_400_000, _>")]
    pub timeout: Duration,
    /// The largest result of one call, in bytes.
    #[serde(
        rename = "max_tool_output_bytes",
        deserialize_with = "integer::<_, 256, 1_073_741_824, _>"
    )]
    pub max_output_bytes: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            concurrency: 8,
            max_calls: 64,
            timeout: Duration::from_mins(1),
            max_output_bytes: 64 * 1024,
        }
    }
}
