//! Receivers of webhooks about the ends of runs: one responds at once, and one never does.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use uuid::Uuid;

/// To the service, each address of this machine is another host.
const CONTENT: &str = "127.0.0.2:0";
const HANGING: &str = "127.0.0.3:0";

/// Waits for messages, by the last part of their path.
type Awaited = Arc<Mutex<HashMap<Uuid, oneshot::Sender<()>>>>;

/// A receiver that responds at once; it ends with the process.
#[derive(Debug, Clone)]
pub(super) struct ContentReceiver {
    address: SocketAddr,
    awaited: Awaited,
}

impl ContentReceiver {
    pub(super) async fn start() -> Result<Self> {
        let awaited = Awaited::default();
        let router = Router::new()
            .route("/{id}", post(receive))
            .with_state(Arc::clone(&awaited));
        let listener = TcpListener::bind(CONTENT).await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, awaited })
    }

    /// Returns an address for one message, and what waits for it.
    pub(super) fn expect(&self) -> (String, impl Future<Output = Result<()>> + use<>) {
        let (sender, receiver) = oneshot::channel();
        let id = Uuid::now_v7();
        self.awaited
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, sender);
        let arrival = async move { receiver.await.context("a message is never awaited twice") };
        (format!("http://{}/{id}", self.address), arrival)
    }
}

async fn receive(State(awaited): State<Awaited>, Path(id): Path<Uuid>) {
    let sender = awaited.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    // A message that arrives twice, or whose caller is gone, has no other effect.
    let _ = sender.map(|sender| sender.send(()));
}

/// Starts a receiver that takes connections and never responds; it ends with the process. Returns
/// its address.
pub(super) async fn start_hanging() -> Result<SocketAddr> {
    let listener = TcpListener::bind(HANGING).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
        }
    });
    Ok(address)
}
