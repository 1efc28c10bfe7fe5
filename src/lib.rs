//! agent-runtime runs LLM agents over immutable sessions.
//!
//! Read the modules in this order: plain values first, then what is built of them. Each may import only what stands above it, as
//! `tests/tidy.rs` enforces and ARCHITECTURE.md explains.
