//! The binary as a process: what an operator starts, calls, stops and kills, over real
//! sockets, files and signals.
//!
//! The commands of `src/cli` and their tests: `serve` in `start` and `shutdown`, `run` in
//! `run_command`, `runs`, `threads` and `agents` in `reading_commands`, `sessions` in `commands`,
//! `transfer`, `transfer_entries` and `transfer_lines`, `migrate` in `commands`, `keys` in `keys`,
//! `tokens` in `tokens`, `audit` in `audit`, `after-restore` in `handover`, `gc` and `tenants` in
//! `retention`, `check-config` in `configuration`, `healthcheck` and `openapi` in `start`,
//! `completions` in `remote_commands`. `remote_commands` and `remote_runs` have the commands that
//! ask a service, `terminal` what is shown on a terminal alone. `sandbox`, `command_workers` and
//! `worker_network` have the commands of agents. `coding_agent` runs `examples/coding-agent`,
//! `console` the checks of `tests/console`. `copy_sessions` and `packages` run what is in
//! `scripts`. `tls` and `tls_frames` have a service that speaks TLS, `failover` has a PostgreSQL
//! server with a standby.

mod audit;
mod binary;
mod browser;
mod service;

#[cfg(target_os = "linux")]
mod certificates;
mod clients;
#[cfg(target_os = "linux")]
mod coding_agent;
#[cfg(target_os = "linux")]
mod command_workers;
mod commands;
mod configuration;
mod console;
mod copy_sessions;
mod crash;
mod faces;
#[cfg(target_os = "linux")]
mod failover;
mod frozen;
#[cfg(target_os = "linux")]
mod full_disk;
mod handover;
mod keys;
mod late_leases;
mod logs;
mod lost_events;
#[cfg(target_os = "linux")]
mod memory;
mod metrics;
mod openai_clients;
mod outages;
#[cfg(target_os = "linux")]
mod packages;
mod partitions;
mod pooler;
mod reading_commands;
mod remote_commands;
mod remote_runs;
mod replicas;
mod retention;
mod run_command;
#[cfg(target_os = "linux")]
mod sandbox;
mod shutdown;
mod shutdown_callers;
mod spending;
mod standby;
mod start;
mod stores;
#[cfg(target_os = "linux")]
mod terminal;
mod tls;
mod tls_frames;
mod tokens;
mod traces;
mod transfer;
#[cfg(target_os = "linux")]
mod transfer_entries;
mod transfer_lines;
mod waiting;
mod waiting_kills;
mod without_redis;
#[cfg(target_os = "linux")]
mod worker_network;
mod workers;
