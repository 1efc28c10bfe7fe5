//! Runs real commands that try to get out of the sandbox, to exceed their limits, or to survive.
//!
//! `scripts/escape` runs it as root, as an ordinary user and in
//! a container, in a PID namespace of its own. Its fork bombs would disturb other tests.

#![expect(clippy::unwrap_used, reason = "a test that meets what it does not expect fails")]

mod cgroup;
mod files;
mod floods;
mod harness;
mod hiding;
mod kernel;
mod lifetime;
mod limits;
mod network;
mod none;
mod others;
mod overhead;
mod priority;
mod tools;
