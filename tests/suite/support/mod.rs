//! Items that the tests of several parts of the service share. Each item lives in a file of its
//! own.

pub(crate) mod test_app;

pub(crate) mod answer;
mod mock_messages;
pub(crate) mod mock_model;

pub(crate) mod changes;
#[cfg(target_os = "linux")]
pub(crate) mod forwarder;
pub(crate) mod gated;
pub(crate) mod hostile;
pub(crate) mod members;
pub(crate) mod pgbouncer;
#[cfg(target_os = "linux")]
pub(crate) mod postgres_pair;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod webhook_receiver;
