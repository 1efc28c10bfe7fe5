//! Runs what the documents show and compares what they claim with the code: a document that drifts
//! fails here.

mod backups;
pub(crate) mod blocks;
mod change_lists;
mod commands;
mod configuration;
mod examples;
mod figures;
mod generated;
mod hooks;
mod known;
mod links;
mod metrics;
mod order;
mod pictures;
mod reference;
mod run_errors;
mod service;
mod webhook;
mod words;
