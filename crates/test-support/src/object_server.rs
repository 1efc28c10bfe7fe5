//! A server for what the service needs of an object store: writing, reading and deleting an object.
//! It speaks the protocols of S3 and Google Cloud Storage itself, and forwards requests for Azure
//! to Azurite. Requests may fail in many ways.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::azurite::{ACCOUNT, Azurite, KEY};
use crate::gate::Gate;

/// The key of the client, which the server checks (but not the signatures of S3).
const S3_KEY_ID: &str = "AKIDEXAMPLE";
const S3_SECRET: &str = "wJalrXUtnFEMI";
const GOOGLE_TOKEN: &str = "ya29.wJalrXUtnFEMI";

/// Whose protocol the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    S3,
    Google,
    Azure,
}

/// A fault that a request meets.
#[derive(Debug, Clone)]
pub enum Fault {
    /// An error with this status.
    Status(u16),
    /// No reply.
    Silence,
    /// Two thirds of the reply.
    Cut,
    /// Other bytes of the same length.
    OtherBytes,
    /// The reply waits at the gate. The request has its effect before.
    Held(Arc<Gate>),
}

/// The running server; it stops when it is dropped.
#[derive(Debug)]
pub struct ObjectServer {
    address: SocketAddr,
    protocol: Protocol,
    azurite: Option<Azurite>,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The objects of the bucket by their keys.
    objects: BTreeMap<String, Vec<u8>>,
    /// The method, the key and the header `authorization` of each request.
    requests: Vec<(String, String, String)>,
    /// The faults of the next requests.
    next: VecDeque<Fault>,
    /// The fault of all further requests.
    always: Option<Fault>,
}

impl ObjectServer {
    /// Starts a server with an empty bucket; `None` if Azurite is neither there nor required.
    pub async fn start(protocol: Protocol) -> Option<Self> {
        let azurite = match protocol {
            Protocol::S3 | Protocol::Google => None,
            Protocol::Azure => Some(Azurite::start().await?),
        };
        let upstream = azurite.as_ref().map(Azurite::address);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(connection, upstream, Arc::clone(&shared)));
            }
        });
        Some(Self {
            address,
            protocol,
            azurite,
            state,
            task,
        })
    }

    /// Returns the address of a prefix in the bucket.
    pub fn url(&self) -> &'static str {
        match self.protocol {
            Protocol::S3 => "s3://bucket/pre/fix",
            Protocol::Google => "gs://bucket/pre/fix",
            Protocol::Azure => "az://bucket/pre/fix",
        }
    }

    /// Returns the options of a client of the server, by the names of their variables.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let url = format!("http://{}", self.address);
        match self.protocol {
            Protocol::S3 => vec![
                ("AWS_ENDPOINT", url),
                ("AWS_DISABLE_BULK_DELETE", "true".to_owned()),
                ("AWS_ALLOW_HTTP", "true".to_owned()),
                ("AWS_REGION", "eu-central-1".to_owned()),
                ("AWS_ACCESS_KEY_ID", S3_KEY_ID.to_owned()),
                ("AWS_SECRET_ACCESS_KEY", S3_SECRET.to_owned()),
            ],
            Protocol::Google => vec![
                ("GOOGLE_BASE_URL", url),
                ("GOOGLE_ALLOW_HTTP", "true".to_owned()),
                ("GOOGLE_BEARER_TOKEN", GOOGLE_TOKEN.to_owned()),
            ],
            Protocol::Azure => vec![
                ("AZURE_ENDPOINT", format!("{url}/{ACCOUNT}")),
                ("AZURE_ALLOW_HTTP", "true".to_owned()),
                ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.to_owned()),
                ("AZURE_STORAGE_ACCOUNT_KEY", KEY.to_owned()),
            ],
        }
    }

    /// Returns the option that has the timeout of an attempt.
    pub fn timeout(&self) -> &'static str {
        match self.protocol {
            Protocol::S3 => "AWS_TIMEOUT",
            Protocol::Google => "GOOGLE_TIMEOUT",
            Protocol::Azure => "AZURE_TIMEOUT",
        }
    }

    /// Returns the option that has wrong credentials.
    pub fn wrong_credentials(&self) -> (&'static str, String) {
        match self.protocol {
            Protocol::S3 => ("AWS_ACCESS_KEY_ID", "AKIDOTHER".to_owned()),
            Protocol::Google => ("GOOGLE_BEARER_TOKEN", "ya29.other".to_owned()),
            Protocol::Azure => ("AZURE_STORAGE_ACCOUNT_KEY", "b3RoZXI=".to_owned()),
        }
    }

    /// Returns how the header `authorization` of each request begins.
    pub fn authorization(&self) -> String {
        match self.protocol {
            Protocol::S3 => format!("AWS4-HMAC-SHA256 Credential={S3_KEY_ID}/"),
            Protocol::Google => format!("Bearer {GOOGLE_TOKEN}"),
            Protocol::Azure => format!("SharedKey {ACCOUNT}:"),
        }
    }

    /// Lets the next requests fail, one after another.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().unwrap().next.extend(faults);
    }

    /// Lets all further requests fail, or none.
    pub fn fail_always(&self, fault: Option<Fault>) {
        self.state.lock().unwrap().always = fault;
    }

    /// Returns the keys of the objects.
    pub async fn objects(&self) -> Vec<String> {
        match &self.azurite {
            Some(azurite) => azurite.objects().await,
            None => self.state.lock().unwrap().objects.keys().cloned().collect(),
        }
    }

    /// Returns the method, the key and the authorization of each request so far.
    pub fn requests(&self) -> Vec<(String, String, String)> {
        self.state.lock().unwrap().requests.clone()
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut connection: TcpStream, upstream: Option<SocketAddr>, state: Arc<Mutex<State>>) {
    while let Some((head, body)) = read(&mut connection).await {
        let fault = received(&state, &head);
        let mut reply = match (&fault, upstream) {
            (Some(Fault::Status(status)), _) => reply(*status, &[], b"<Error><Code>Fault</Code></Error>"),
            (Some(Fault::Silence), _) => std::future::pending().await,
            (_, Some(upstream)) => forward(upstream, &head, &body).await,
            (_, None) => answer(&state, &head, body),
        };
        match fault {
            Some(Fault::Held(gate)) => gate.pass().await,
            Some(Fault::Cut) => {
                let _ = connection.write_all(&reply[..reply.len() - reply.len() / 3]).await;
                return;
            }
            Some(Fault::OtherBytes) => {
                let length = reply.len();
                reply[length - 100..].fill(b'!');
            }
            Some(Fault::Status(_) | Fault::Silence) | None => (),
        }
        if connection.write_all(&reply).await.is_err() {
            return;
        }
    }
}

/// Records a request. Returns its fault.
fn received(state: &Mutex<State>, head: &str) -> Option<Fault> {
    let (method, path) = line(head);
    let authorization = header(head, "authorization").unwrap_or_default();
    let mut state = state.lock().unwrap();
    state.requests.push((
        method.to_owned(),
        key(path).unwrap_or_default(),
        authorization.to_owned(),
    ));
    state.next.pop_front().or_else(|| state.always.clone())
}

/// Has Azurite reply. The signature of a request covers neither its host nor its connection.
async fn forward(upstream: SocketAddr, head: &str, body: &[u8]) -> Vec<u8> {
    let mut connection = TcpStream::connect(upstream).await.unwrap();
    let (line, rest) = head.split_once("\r\n").unwrap();
    let head = format!("{line}\r\nconnection: close\r\n{rest}");
    connection.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    let mut reply = Vec::new();
    connection.read_to_end(&mut reply).await.unwrap();
    reply
}

fn answer(state: &Mutex<State>, head: &str, body: Vec<u8>) -> Vec<u8> {
    let authorization = header(head, "authorization").unwrap_or_default();
    let key_id = format!("Credential={S3_KEY_ID}/");
    if authorization.starts_with("Bearer ") {
        if authorization != format!("Bearer {GOOGLE_TOKEN}") {
            return reply(401, &[], b"<Error><Code>AuthenticationRequired</Code></Error>");
        }
    } else if !authorization.contains(&key_id) {
        return reply(403, &[], b"<Error><Code>InvalidAccessKeyId</Code></Error>");
    }
    let (method, path) = line(head);
    let Some(key) = key(path) else {
        return reply(404, &[], b"<Error><Code>NoSuchBucket</Code></Error>");
    };
    let objects = &mut state.lock().unwrap().objects;
    let missing = || reply(404, &[], b"<Error><Code>NoSuchKey</Code></Error>");
    match method {
        "PUT" => {
            objects.insert(key, body);
            reply(200, &[], b"")
        }
        // Unlike S3, Google Cloud Storage does not delete what is missing.
        "DELETE" if objects.remove(&key).is_none() && authorization.starts_with("Bearer ") => missing(),
        "DELETE" => reply(204, &[], b""),
        _ => {
            let Some(object) = objects.get(&key) else {
                return missing();
            };
            let range = header(head, "range");
            let from = range.and_then(|range| range.strip_prefix("bytes=")?.split('-').next()?.parse::<usize>().ok());
            match from {
                Some(from) => {
                    let range = format!("bytes {from}-{}/{}", object.len() - 1, object.len());
                    reply(206, &[("content-range", &range)], &object[from..])
                }
                None => reply(200, &[], object),
            }
        }
    }
}

/// Returns the method and the path of a request.
fn line(head: &str) -> (&str, &str) {
    let mut words = head.split(' ');
    (words.next().unwrap(), words.next().unwrap())
}

/// Returns the key of an object in the bucket; `None` in another bucket.
fn key(path: &str) -> Option<String> {
    let path = percent_decode_str(path).decode_utf8().unwrap();
    let account = format!("/{ACCOUNT}");
    let path = path.strip_prefix(&account).unwrap_or(&path);
    path.strip_prefix("/bucket/").map(ToOwned::to_owned)
}

fn reply(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut reply = format!(
        "HTTP/1.1 {status} Words\r\netag: \"e\"\r\nlast-modified: Tue, 01 Jul 2025 10:00:00 GMT\r\n\
         content-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        reply.extend([name, ": ", value, "\r\n"]);
    }
    reply.push_str("\r\n");
    [reply.into_bytes(), body.to_vec()].concat()
}

/// Reads a request; `None` at the end of the connection.
async fn read(connection: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length: usize = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < end + length {
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, bytes[end..].to_vec()))
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}
