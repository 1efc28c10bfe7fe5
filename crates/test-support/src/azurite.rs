//! Azurite, the emulator of Azure Blob Storage, with a container `bucket`.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::Utc;
use hmac::{Hmac, KeyInit as _, Mac as _};
use net::http_client::client_builder;
use reqwest::Method;
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::languages::node_modules;

/// The account that Azurite has, and its key, which is public.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";
pub(crate) const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// How long the start may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// The running emulator; it stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Azurite {
    address: SocketAddr,
    _process: Child,
}

impl Azurite {
    /// Starts the emulator, which stores blobs in memory; `None` if it is neither there nor
    /// required.
    pub(crate) async fn start() -> Option<Self> {
        let program = node_modules()?.join("azurite/dist/src/blob/main.js");
        let mut process = Command::new("node")
            .arg(program)
            .args(["--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence"])
            .args(["--silent", "--disableTelemetry", "--skipApiVersionCheck"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let listening = async {
            loop {
                let line = lines.next_line().await.unwrap().expect("Azurite stopped");
                if let Some((_, address)) = line.split_once("successfully listens on http://") {
                    return address.trim().parse().unwrap();
                }
            }
        };
        let address = timeout(PATIENCE, listening).await.expect("Azurite does not start");
        // Its output must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let azurite = Self {
            address,
            _process: process,
        };
        azurite.request(Method::PUT, "").await;
        Some(azurite)
    }

    /// Returns the address of its HTTP server.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the names of the blobs in the container.
    pub(crate) async fn objects(&self) -> Vec<String> {
        let list = self.request(Method::GET, "comp:list\n").await;
        let names = list.split("<Name>").skip(1);
        names
            .map(|rest| rest.split_once("</Name>").unwrap().0.to_owned())
            .collect()
    }

    /// Sends a signed request for the container, with these lines of the query before others.
    async fn request(&self, method: Method, query: &str) -> String {
        let query = format!("{query}restype:container");
        let date = Utc::now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let headers = [("x-ms-date", date.as_str()), ("x-ms-version", "2021-12-02")];
        // The headers without the prefix `x-ms-` are empty.
        let mut signed = format!("{method}{}", "\n".repeat(12));
        for (name, value) in headers {
            signed.extend([name, ":", value, "\n"]);
        }
        signed.extend(["/", ACCOUNT, "/", ACCOUNT, "/bucket\n", &query]);
        let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).unwrap()).unwrap();
        mac.update(signed.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let query = query.replace(':', "=").replace('\n', "&");
        let url = format!("http://{}/{ACCOUNT}/bucket?{query}", self.address);
        let client = client_builder().unwrap().build().unwrap();
        let mut request = client
            .request(method, url)
            .header("authorization", format!("SharedKey {ACCOUNT}:{signature}"));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let response = request.send().await.unwrap().error_for_status().unwrap();
        response.text().await.unwrap()
    }
}
