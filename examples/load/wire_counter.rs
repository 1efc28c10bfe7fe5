//! Counts the round trips between the service and PostgreSQL where nothing can be missed: on the
//! wire. A proxy that reads the frames of the client and passes everything on unchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// A running proxy; it ends with the process.
#[derive(Debug, Clone)]
pub(crate) struct WireCounter {
    /// Where it listens on loopback.
    pub(crate) port: u16,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    round_trips: AtomicU64,
    executions: AtomicU64,
}

/// The traffic so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    /// The times that the client stopped to wait for the server: Sync and simple Query messages. A
    /// Sync with nothing before it is left out: so the driver tests a connection that goes back to
    /// the pool, after the response was passed on.
    pub(crate) round_trips: u64,
    /// The statements executed: Execute and simple Query messages.
    pub(crate) executions: u64,
}

impl WireCounter {
    /// Starts a proxy before a server that speaks without TLS.
    pub(crate) async fn start(server: String) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let counter = Self {
            port: listener.local_addr()?.port(),
            counts: Arc::default(),
        };
        let counts = Arc::clone(&counter.counts);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server.clone(), Arc::clone(&counts)));
            }
        });
        Ok(counter)
    }

    /// Returns what has passed so far.
    pub(crate) fn passed(&self) -> Passed {
        Passed {
            round_trips: self.counts.round_trips.load(Ordering::SeqCst),
            executions: self.counts.executions.load(Ordering::SeqCst),
        }
    }
}

async fn pass(client: TcpStream, server: String, counts: Arc<Counts>) -> Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    tokio::select! {
        done = count_frames(from_client, to_server, &counts) => done,
        done = tokio::io::copy(&mut from_server, &mut to_client) => Ok(done.map(|_| ())?),
    }
}

/// Passes the client's frames on. All but the first begin with the letter of their type.
async fn count_frames(client: OwnedReadHalf, mut server: OwnedWriteHalf, counts: &Counts) -> Result<()> {
    let mut client = BufReader::new(client);
    let mut frame = Vec::new();
    let mut first = true;
    let mut something_to_wait_for = false;
    loop {
        frame.clear();
        if !first {
            frame.push(client.read_u8().await?);
        }
        let length = client.read_u32().await?;
        frame.extend_from_slice(&length.to_be_bytes());
        let body = u64::from(length.saturating_sub(4));
        (&mut client).take(body).read_to_end(&mut frame).await?;
        match frame.first() {
            _ if first => first = false,
            Some(b'S') if something_to_wait_for => {
                something_to_wait_for = false;
                counts.round_trips.fetch_add(1, Ordering::SeqCst);
            }
            Some(b'S') => (),
            Some(b'E') => {
                something_to_wait_for = true;
                counts.executions.fetch_add(1, Ordering::SeqCst);
            }
            Some(b'Q') => {
                counts.round_trips.fetch_add(1, Ordering::SeqCst);
                counts.executions.fetch_add(1, Ordering::SeqCst);
            }
            _ => something_to_wait_for = true,
        }
        server.write_all(&frame).await?;
    }
}
