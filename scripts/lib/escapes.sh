# shellcheck shell=bash
# Builds the tests that try to escape from the sandbox. Sourced by the scripts beside it, in the
# directory of the project.

# Sets SUITE to the tests' binary, and HELPER to that of the service.
escapes_build() {
    local built
    built=$(cargo test --locked --test escape --no-run --message-format=json)
    SUITE=$(sed -n 's/.*"executable":"\([^"]*\/escape-[^"]*\)".*/\1/p' <<<"$built" | tail -n 1)
    HELPER=$(sed -n 's/.*"executable":"\([^"]*\/agent-runtime\)".*/\1/p' <<<"$built" | tail -n 1)
    [[ -x $SUITE && -x $HELPER ]] || { echo "cargo built no suite" >&2 && exit 1; }
}
