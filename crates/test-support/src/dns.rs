//! A DNS server of the test's own over a real UDP socket, and the resolver that asks it.
//!
//! The server calls a function for each question, so that it can change its answer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::BoxFuture;
use net::outgoing::NameResolver;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;
/// The most aliases that lead to a name.
const MAX_ALIASES: usize = 4;

/// An answer of the server.
#[derive(Debug, Clone)]
pub enum Record {
    Address(IpAddr),
    Alias(&'static str),
}

impl Record {
    /// Makes the record of an address.
    pub fn address(text: &str) -> Self {
        Self::Address(text.parse().unwrap())
    }

    fn kind(&self) -> u16 {
        match self {
            Self::Address(IpAddr::V4(_)) => TYPE_A,
            Self::Address(IpAddr::V6(_)) => TYPE_AAAA,
            Self::Alias(_) => TYPE_CNAME,
        }
    }

    fn data(&self) -> Vec<u8> {
        match self {
            Self::Address(IpAddr::V4(address)) => address.octets().to_vec(),
            Self::Address(IpAddr::V6(address)) => address.octets().to_vec(),
            Self::Alias(name) => encoded(name),
        }
    }
}

/// The running server; it stops when it is dropped.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl DnsServer {
    /// Starts a server that answers questions about addresses with the function. It gets the name
    /// and how often its addresses were asked for before.
    pub async fn start(answer: impl Fn(&str, usize) -> Vec<Record> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::<String>::new()));
        let questions = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            let mut packet = [0; 512];
            loop {
                let (length, from) = socket.recv_from(&mut packet).await.unwrap();
                let (name, end) = decoded(&packet[..length], 12);
                let kind = u16::from_be_bytes([packet[end], packet[end + 1]]);
                // Each lookup asks for both kinds. The second question gets the same answer.
                let before = {
                    let mut asked = questions.lock().unwrap();
                    if kind == TYPE_A {
                        asked.push(name.clone());
                    }
                    asked.iter().filter(|other| **other == name).count() - 1
                };
                let records = answer(&name, before);
                let fitting = |record: &&Record| [kind, TYPE_CNAME].contains(&record.kind());
                let records: Vec<_> = records.iter().filter(fitting).collect();
                let response = response(&packet[..end + 4], &name, &records);
                socket.send_to(&response, from).await.unwrap();
            }
        });
        Self { address, asked, task }
    }

    /// Returns a resolver that asks this server.
    pub fn resolver(&self) -> Arc<dyn NameResolver> {
        Arc::new(DnsClient { server: self.address })
    }

    /// Returns the names whose addresses were asked for, in order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Asks a server by UDP. Follows aliases.
#[derive(Debug, Clone, Copy)]
struct DnsClient {
    server: SocketAddr,
}

impl NameResolver for DnsClient {
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let client = *self;
        Box::pin(async move {
            let mut name = host;
            for _ in 0..MAX_ALIASES {
                let mut found = client.ask(&name, TYPE_A).await?;
                found.extend(client.ask(&name, TYPE_AAAA).await?);
                let addresses: Vec<_> = found.iter().filter_map(|answer| answer.clone().ok()).collect();
                match found.into_iter().find_map(Result::err) {
                    Some(alias) if addresses.is_empty() => name = alias,
                    _ => return Ok(addresses),
                }
            }
            Err(io::Error::other("too many aliases"))
        })
    }
}

impl DnsClient {
    /// Returns the addresses that the server answers with, and names of aliases as errors.
    async fn ask(&self, name: &str, kind: u16) -> io::Result<Vec<Result<IpAddr, String>>> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        socket.connect(self.server).await?;
        let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        query.extend(encoded(name));
        query.extend(kind.to_be_bytes());
        query.extend([0, 1]);
        socket.send(&query).await?;
        let mut packet = [0; 2048];
        let received = timeout(Duration::from_secs(30), socket.recv(&mut packet)).await;
        let packet = &packet[..received.map_err(io::Error::other)??];
        let count = u16::from_be_bytes([packet[6], packet[7]]);
        let mut at = query.len();
        let mut answers = Vec::new();
        for _ in 0..count {
            let (_, end) = decoded(packet, at);
            let kind = u16::from_be_bytes([packet[end], packet[end + 1]]);
            let length = usize::from(u16::from_be_bytes([packet[end + 8], packet[end + 9]]));
            let data = &packet[end + 10..end + 10 + length];
            answers.push(match kind {
                TYPE_A => Ok(Ipv4Addr::from(<[u8; 4]>::try_from(data).unwrap()).into()),
                TYPE_AAAA => Ok(Ipv6Addr::from(<[u8; 16]>::try_from(data).unwrap()).into()),
                _ => Err(decoded(packet, end + 10).0),
            });
            at = end + 10 + length;
        }
        Ok(answers)
    }
}

fn response(query: &[u8], name: &str, records: &[&Record]) -> Vec<u8> {
    let mut response = query.to_vec();
    // A response, with as many answers.
    response[2] = 0x81;
    response[3] = 0x80;
    response[7] = u8::try_from(records.len()).unwrap();
    for record in records {
        response.extend(encoded(name));
        response.extend(record.kind().to_be_bytes());
        // The class and a time to live of 0 seconds.
        response.extend([0, 1, 0, 0, 0, 0]);
        let data = record.data();
        response.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        response.extend(data);
    }
    response
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes
}

/// Reads a name without pointers, and returns where it ends.
fn decoded(packet: &[u8], mut at: usize) -> (String, usize) {
    let mut labels = Vec::new();
    while packet[at] != 0 {
        let end = at + 1 + usize::from(packet[at]);
        labels.push(String::from_utf8(packet[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    (labels.join("."), at + 1)
}
