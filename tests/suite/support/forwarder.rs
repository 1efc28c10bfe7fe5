//! A TCP forwarder that leads to the server that a test chooses: the one address before several
//! servers, as `HAProxy` has it. It also loses what passes in one direction, as a network does.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A running forwarder. Dropping it closes its connections.
#[derive(Debug)]
pub(crate) struct Forwarder {
    address: SocketAddr,
    route: Arc<Route>,
    task: JoinHandle<()>,
}

/// Where bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    ToClient,
    ToServer,
}

#[derive(Debug)]
struct Route {
    /// The port of the server for new connections.
    port: AtomicU16,
    lost: Mutex<Option<Direction>>,
}

impl Forwarder {
    /// Starts a forwarder to a port of this machine.
    pub(crate) async fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let route = Arc::new(Route {
            port: AtomicU16::new(port),
            lost: Mutex::default(),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&route)));
        Self { address, route, task }
    }

    /// Returns the address at which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Leads new connections to another port. Open ones stay.
    pub(crate) fn lead_to(&self, port: u16) {
        self.route.port.store(port, Ordering::SeqCst);
    }

    /// Loses all bytes in one direction from now on. The connections stay open.
    pub(crate) fn lose(&self, direction: Direction) {
        *self.route.lost.lock().unwrap() = Some(direction);
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, route: Arc<Route>) {
    // They end with the forwarder.
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let route = Arc::clone(&route);
        connections.spawn(async move {
            let port = route.port.load(Ordering::SeqCst);
            // A client is disconnected at once if no server listens.
            if let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await {
                forward(client, server, &route).await;
            }
        });
    }
}

/// Forwards until one of the two ends its connection.
async fn forward(client: TcpStream, server: TcpStream, route: &Route) {
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    tokio::select! {
        () = pass(client_reads, server_writes, Direction::ToServer, route) => (),
        () = pass(server_reads, client_writes, Direction::ToClient, route) => (),
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, direction: Direction, route: &Route) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let is_lost = route.loses(direction);
        if !is_lost && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

impl Route {
    fn loses(&self, direction: Direction) -> bool {
        *self.lost.lock().unwrap() == Some(direction)
    }
}
