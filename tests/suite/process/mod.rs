//! The binary as a process: what an operator starts, asks, stops and kills, over real sockets, files and signals.

mod binary;
mod service;

mod certificates;
mod clients;
mod commands;
mod configuration;
mod crash;
mod cut_short;
mod farewells;
mod handover;
mod keys;
mod late_leases;
mod logs;
mod looking;
mod lost_events;
#[cfg(target_os = "linux")]
mod memory;
mod moving;
mod older_stores;
mod outages;
mod replicas;
mod retention;
mod shutdown;
mod start;
mod stores;
mod without_redis;
mod workers;
