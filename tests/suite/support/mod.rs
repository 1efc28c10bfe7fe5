//! What the tests of several parts share. Each item lives in a file of its own.

pub(crate) mod statements;
pub(crate) mod test_app;

pub(crate) mod answer;
pub(crate) mod logs;
mod mock_messages;
pub(crate) mod mock_model;
pub(crate) mod model_requests;
pub(crate) mod model_server;

pub(crate) mod databases;
pub(crate) mod deliveries;
pub(crate) mod object_server;
pub(crate) mod outages;

pub(crate) mod arbitrary_state;
pub(crate) mod azurite;
pub(crate) mod clock;
pub(crate) mod dns;
pub(crate) mod error_answers;
pub(crate) mod execution_ports;
pub(crate) mod fake_model;
pub(crate) mod fake_tool;
pub(crate) mod full_store;
pub(crate) mod gate;
pub(crate) mod gated;
pub(crate) mod hostile;
pub(crate) mod languages;
pub(crate) mod memory_journal;
pub(crate) mod model_request;
pub(crate) mod noise;
pub(crate) mod pgbouncer;
pub(crate) mod ports;
pub(crate) mod processors;
pub(crate) mod provider_rules;
pub(crate) mod proxy;
pub(crate) mod raw_server;
pub(crate) mod recorder;
pub(crate) mod schema_rules;
pub(crate) mod wait;
pub(crate) mod webhook_receiver;
pub(crate) mod wire_rules;
