//! The promises of replicas that share a Redis server.

mod events;
mod feed;
mod link;
mod messages;
mod rates;
mod removal;
mod replicas;
mod tls;
