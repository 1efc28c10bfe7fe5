# Shortcuts; each recipe is one line of CONTRIBUTING.md.

# List the recipes.
default:
    @just --list

# Start the service with the embedded store.
run *ARGS:
    cargo run --release -- {{ARGS}}

# Run the test suite against private servers; arguments select tests.
test *ARGS:
    ./scripts/test {{ARGS}}

# Format the code.
fmt:
    cargo fmt --all

# Check the lints as CI does.
lint:
    cargo clippy --locked --workspace --all-targets -- -D warnings

# Run the benchmarks against private servers.
bench *ARGS:
    ./scripts/with-servers cargo bench --locked {{ARGS}}

# Put load on the release binary and print what it measured.
bench-load *ARGS:
    ./scripts/bench {{ARGS}}

# Kill, freeze and cut off replicas while runs are at work, and check every promise.
faults *ARGS:
    ./scripts/faults {{ARGS}}

# Run everything that CI runs.
ci:
    bash .ci/run
