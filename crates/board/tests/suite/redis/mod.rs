//! What only replicas that share a Redis server promise.

mod events;
mod link;
mod messages;
mod rates;
mod removal;
mod replicas;
mod tls;
