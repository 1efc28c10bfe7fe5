//! The process of an identity provider, which a test controls.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::languages::identity_provider;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::test_app::plain_client;

const PROGRAM: &str = include_str!("../../../oidc/provider.mjs");

/// A provider. It ends with this value.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) issuer: String,
    control: String,
    client: Client,
    _process: Child,
    _folder: TempDir,
}

impl Provider {
    /// Starts a provider that signs with these algorithms; `None` without its libraries.
    pub(crate) async fn start(algorithms: &[&str]) -> Option<Self> {
        let (node, modules) = identity_provider()?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("provider.mjs"), PROGRAM).unwrap();
        symlink(modules, folder.path().join("node_modules")).unwrap();
        let mut process = Command::new(node)
            .args(["provider.mjs", "0"])
            .args(algorithms)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().expect("the provider ended");
        let addresses: Value = serde_json::from_str(&line).unwrap();
        let address = |name: &str| addresses[name].as_str().unwrap().to_owned();
        Some(Self {
            issuer: address("issuer"),
            control: address("control"),
            client: plain_client(),
            _process: process,
            _folder: folder,
        })
    }

    /// Issues a token.
    pub(crate) async fn token(&self, asked: Value) -> String {
        let issued = self.control("/token", asked).await;
        issued["token"].as_str().unwrap().to_owned()
    }

    /// Makes a key that signs from now on. The old keys stay published, up to a number.
    pub(crate) async fn rotate(&self, old_keys: u32) {
        self.control("/rotate", json!({"keep": old_keys})).await;
    }

    /// Refuses connections from now on.
    pub(crate) async fn stop(&self) {
        self.control("/down", json!({})).await;
    }

    /// Accepts connections again, and answers at once.
    pub(crate) async fn resume(&self) {
        self.control("/up", json!({})).await;
    }

    /// Counts the requests for keys.
    pub(crate) async fn key_reads(&self) -> u64 {
        self.control("/count", json!({})).await["jwks"].as_u64().unwrap()
    }

    /// Sends a command.
    pub(crate) async fn control(&self, path: &str, body: Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.control));
        let response = request.body(body.to_string()).send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }
}
