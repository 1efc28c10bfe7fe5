//! A way between a replica and a server that can be cut or stalled. It understands nothing of what
//! passes.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A running proxy; it ends with the process.
#[derive(Debug)]
pub(crate) struct Proxy {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    passage: watch::Sender<Passage>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Passage {
    /// Grows with each cut.
    cuts: u64,
    /// Grows whenever the connections of the moment go silent.
    silences: u64,
    is_stalled: bool,
}

impl Proxy {
    /// Starts a proxy before the server at this address of the machine.
    pub(crate) async fn start(server_port: u16) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let passage = watch::Sender::new(Passage::default());
        let watched = passage.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server_port, watched.subscribe()));
            }
        });
        Ok(Self { address, passage })
    }

    /// Resets every connection; new ones pass.
    pub(crate) fn cut(&self) {
        self.passage.send_modify(|passage| passage.cuts += 1);
    }

    /// Lets nothing pass on the connections of the moment, for good and without closing them; new
    /// ones pass.
    pub(crate) fn silence(&self) {
        self.passage.send_modify(|passage| passage.silences += 1);
    }

    /// Lets nothing pass, or everything again. Connections stay open meanwhile.
    pub(crate) fn stall(&self, is_stalled: bool) {
        self.passage.send_modify(|passage| passage.is_stalled = is_stalled);
    }
}

async fn forward(mut client: TcpStream, server_port: u16, passage: watch::Receiver<Passage>) {
    let cuts = passage.borrow().cuts;
    // A server that is down refuses, and so does its proxy by closing.
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server_port)).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let mut watched = passage.clone();
    let is_cut = {
        let (client_reads, client_writes) = client.split();
        let (server_reads, server_writes) = server.split();
        tokio::select! {
            () = pass(client_reads, server_writes, passage.clone()) => false,
            () = pass(server_reads, client_writes, passage) => false,
            _ = watched.wait_for(|now| now.cuts != cuts) => true,
        }
    };
    if is_cut {
        // Without lingering a close is a reset: what was on its way is lost.
        let _ = client.set_zero_linger();
        let _ = server.set_zero_linger();
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut passage: watch::Receiver<Passage>,
) {
    let silences = passage.borrow().silences;
    let mut buffer = vec![0; 1 << 14];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let passes = |now: &Passage| !now.is_stalled && now.silences == silences;
        let is_open = passage.wait_for(passes).await.is_ok();
        if !is_open || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
