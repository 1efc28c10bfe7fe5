//! A TCP proxy before a server, which cuts a connection at the worst moment: the request is done,
//! its response is lost. It also silences connections, as a network does that has forgotten them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A running proxy. It loses the response to the first request that holds the mark, and no other.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    cuts: Arc<AtomicUsize>,
    /// Grows whenever the connections of the moment go silent.
    silences: watch::Sender<usize>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy before the server.
    pub async fn start(server: String, mark: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::<AtomicUsize>::default();
        let seen = Arc::clone(&cuts);
        let silences = watch::Sender::new(0);
        let silencing = silences.clone();
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(&server).await.unwrap();
                let mut silencing = silencing.subscribe();
                let forwarding = forward(client, server, mark, Arc::clone(&seen));
                tokio::spawn(async move {
                    tokio::pin!(forwarding);
                    tokio::select! {
                        () = &mut forwarding => (),
                        // Both ends stay open, and nothing is read of either.
                        Ok(()) = silencing.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self {
            address,
            cuts,
            silences,
            task,
        }
    }

    /// Returns the address of the database behind the proxy.
    pub fn url(&self, database_url: &str) -> String {
        let (position, rest) = split_url(database_url);
        database_url.replacen(&format!("{position}{rest}"), &format!("{}{rest}", self.address), 1)
    }

    /// Lets nothing pass any more on the connections of the moment, which stay open; new ones pass.
    pub fn silence(&self) {
        self.silences.send_modify(|silences| *silences += 1);
    }

    /// Returns how many responses were lost.
    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns host and port of an address, and what follows them.
pub fn split_url(url: &str) -> (String, String) {
    let authority = url.split_once("://").unwrap().1;
    let after_user = authority.rsplit_once('@').map_or(authority, |(_, position)| position);
    let end = after_user.find('/').unwrap();
    (after_user[..end].to_owned(), after_user[end..].to_owned())
}

async fn forward(client: TcpStream, server: TcpStream, mark: &'static str, cuts: Arc<AtomicUsize>) {
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let is_marked = Arc::<AtomicBool>::default();
    let requests = pass_requests(client_reads, server_writes, mark, Arc::clone(&is_marked), cuts);
    let answers = pass_answers(server_reads, client_writes, is_marked);
    tokio::select! {
        () = requests => (),
        () = answers => (),
    }
}

async fn pass_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mark: &str,
    is_marked: Arc<AtomicBool>,
    cuts: Arc<AtomicUsize>,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let holds_mark = buffer[..length]
            .windows(mark.len())
            .any(|window| window == mark.as_bytes());
        if holds_mark && cuts.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            is_marked.store(true, Ordering::SeqCst);
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

async fn pass_answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_marked: Arc<AtomicBool>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if is_marked.load(Ordering::SeqCst) || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
