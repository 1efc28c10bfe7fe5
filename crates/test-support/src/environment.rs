//! The variables by which tests find their servers, and the programs and libraries of others.

/// When set, a missing server, program or library is a failure.
pub const REQUIRE: &str = "AGENT_RUNTIME_TEST_REQUIRE_SERVERS";

/// Reads a variable of the test's own environment. An empty one counts as missing.
#[expect(clippy::disallowed_methods, reason = "tests find their servers in the environment")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
