# syntax=docker/dockerfile:1
#
# The service as a small image without a shell, run by an ordinary user.
#
#   docker build -t agent-runtime .
#
# In a container the service must listen on every interface, and it refuses to
# do so without authentication. So create a key first, in the same volume:
#
#   docker run --rm -v agent-runtime:/var/lib/agent-runtime agent-runtime keys create --help
#   docker run --rm -v agent-runtime:/var/lib/agent-runtime agent-runtime keys create ...
#   docker run -d --init -v agent-runtime:/var/lib/agent-runtime -p 127.0.0.1:8080:8080 agent-runtime
#
# or, where nobody else can reach the port, append: serve --insecure-no-auth
#
# The tool `shell` needs programs, which this image does not have. An image with common ones:
#
#   docker build --target tools -t agent-runtime:tools .

# The channel of rust-toolchain.toml; .ci/run compares them. The file itself
# stays outside, since rustup would fetch rustfmt and clippy on its account.
ARG RUST_VERSION=1.95.0

FROM rust:${RUST_VERSION}-slim-bookworm AS stand-ins
WORKDIR /src
COPY . .
RUN sh scripts/lib/stand-ins.sh /stand-ins

FROM rust:${RUST_VERSION}-slim-bookworm AS build
WORKDIR /src

# The dependencies form a layer of their own: it is built from stand-ins for
# our sources and lasts until a manifest or the lock file changes.
COPY --from=stand-ins /stand-ins ./
RUN --mount=type=cache,id=agent-runtime-registry,target=/usr/local/cargo/registry,sharing=locked \
    cargo build --profile dist --locked --features full --bin agent-runtime

# Migrations, the default configuration and other embedded files come along.
# The files keep the times they have outside, which may be older than the
# stand-ins; cargo would take them for built.
COPY . .
RUN --mount=type=cache,id=agent-runtime-registry,target=/usr/local/cargo/registry,sharing=locked \
    touch build.rs src/main.rs src/lib.rs crates/*/src/lib.rs \
    && cargo build --profile dist --locked --features full --bin agent-runtime \
    && mkdir -p /out/var/lib/agent-runtime

# For agents that run commands: docs/sandbox.md says what keeps these in.
FROM debian:bookworm-slim AS tools
LABEL org.opencontainers.image.title="agent-runtime" \
      org.opencontainers.image.description="Runs LLM agents over immutable, forkable sessions, with tools for their commands" \
      org.opencontainers.image.licenses="Apache-2.0 OR MIT"

# Commands have no network, or that of docs/sandbox-network.md. curl is also for the people who
# debug the container.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        bash ca-certificates coreutils curl diffutils file findutils gawk git grep jq less make patch \
        procps python3 python3-venv ripgrep sed tar unzip xz-utils zip \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 65532 nonroot \
    && useradd --uid 65532 --gid 65532 --no-create-home --home-dir /nonexistent nonroot

COPY --from=build /src/target/dist/agent-runtime /usr/local/bin/agent-runtime
COPY LICENSE LICENSE-APACHE LICENSE-MIT /usr/share/doc/agent-runtime/
COPY --from=build --chown=65532:65532 /out/var/lib/agent-runtime /var/lib/agent-runtime

USER 65532:65532
WORKDIR /var/lib/agent-runtime
# The store is data/agent-runtime.db here, unless AGENT_RUNTIME__STORE__URL or …_URL_FILE names
# another one. Both at once are an error, so the image sets neither.
ENV AGENT_RUNTIME__HTTP__LISTEN=0.0.0.0:8080
VOLUME /var/lib/agent-runtime
EXPOSE 8080

HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/agent-runtime", "healthcheck", "--url", "http://127.0.0.1:8080/healthz"]

ENTRYPOINT ["/usr/local/bin/agent-runtime"]
CMD ["serve"]

# glibc, libgcc and the root certificates of Debian 12, nothing else. The last image is the one that
# is built without --target.
FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="agent-runtime" \
      org.opencontainers.image.description="Runs LLM agents over immutable, forkable sessions" \
      org.opencontainers.image.licenses="Apache-2.0 OR MIT"

COPY --from=build /src/target/dist/agent-runtime /usr/local/bin/agent-runtime
COPY LICENSE LICENSE-APACHE LICENSE-MIT /usr/share/doc/agent-runtime/
# A volume mounted here takes over the owner.
COPY --from=build --chown=65532:65532 /out/var/lib/agent-runtime /var/lib/agent-runtime

# By number, so that an orchestrator can see that it is not root.
USER 65532:65532
WORKDIR /var/lib/agent-runtime
ENV AGENT_RUNTIME__HTTP__LISTEN=0.0.0.0:8080
VOLUME /var/lib/agent-runtime
EXPOSE 8080

HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/agent-runtime", "healthcheck", "--url", "http://127.0.0.1:8080/healthz"]

ENTRYPOINT ["/usr/local/bin/agent-runtime"]
CMD ["serve"]
