//! The service under load: the real binary as a child process, configured by its environment alone.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::binary::copy_to;
use crate::client::Client;
use crate::mock::MockModel;
use crate::procfs::{self, Memory};

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(1);

/// How the service is started.
#[derive(Debug)]
pub(crate) struct Launcher {
    binary: PathBuf,
    /// Its working directory, so that no configuration file is found by chance.
    folder: tempfile::TempDir,
    environment: Vec<(String, String)>,
    http: reqwest::Client,
}

/// A running service; dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Service {
    /// Calls it.
    pub(crate) client: Client,
    /// How long it took from the start of the process until it was ready.
    pub(crate) ready_after: Duration,
    child: Child,
}

impl Launcher {
    /// Describes a service that asks the mock model.
    pub(crate) fn new(binary: &Path, mock: &MockModel, http: reqwest::Client) -> Result<Self> {
        let binary = binary.canonicalize();
        let binary = binary.context("the binary is missing; run: cargo build --profile dist")?;
        let folder = tempfile::tempdir()?;
        let binary = copy_to(folder.path(), &binary)?;
        let mut environment = vec![("AGENT_RUNTIME__HTTP__LISTEN".to_owned(), "127.0.0.1:0".to_owned())];
        environment.extend(
            mock.providers()
                .flat_map(|(name, base_url)| provider_settings(name, base_url)),
        );
        Ok(Self {
            binary,
            folder,
            environment,
            http,
        })
    }

    /// Makes a key of a tenant that allows everything. From then on every request needs one.
    pub(crate) async fn make_key(&self, store_url: &str, tenant: &str) -> Result<String> {
        let mut command = self.command(store_url);
        command.args([
            "keys",
            "create",
            "--tenant",
            tenant,
            "--scope",
            "runs:write,sessions:read,admin",
        ]);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let key = printed.split_whitespace().find(|word| word.starts_with("ark_"));
        key.map(ToOwned::to_owned)
            .with_context(|| format!("no key: {}", String::from_utf8_lossy(&output.stderr)))
    }

    fn command(&self, store_url: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .env("AGENT_RUNTIME__STORE__URL", store_url)
            .stdin(Stdio::null());
        command
    }

    /// Starts the service on a store and waits until it is ready.
    pub(crate) async fn start(&self, store_url: &str) -> Result<Service> {
        let none: [(&str, &str); 0] = [];
        self.start_with(store_url, &none).await
    }

    /// Starts the service with further settings.
    pub(crate) async fn start_with(
        &self,
        store_url: &str,
        settings: &[(impl AsRef<OsStr>, impl AsRef<OsStr>)],
    ) -> Result<Service> {
        let log_path = self.folder.path().join(format!("{}.log", uuid::Uuid::now_v7()));
        let began = Instant::now();
        let mut child = self
            .command(store_url)
            .arg("serve")
            .envs(settings.iter().map(|(key, value)| (key, value)))
            .stdout(Stdio::piped())
            .stderr(File::create(&log_path)?)
            .spawn()
            .with_context(|| format!("start {}", self.binary.display()))?;
        let stdout = child.stdout.take().context("no standard output")?;
        let (sender, addresses) = mpsc::channel();
        thread::spawn(move || {
            // Reads on to the end, so that the service never waits for its reader.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(address) = address_of(&line) {
                    let _ = sender.send(address);
                }
            }
        });
        let address = tokio::task::spawn_blocking(move || addresses.recv_timeout(START_LIMIT)).await?;
        let Ok(address) = address else {
            let _ = child.kill();
            bail!(
                "the service printed no address; its log:\n{}",
                std::fs::read_to_string(log_path)?
            );
        };
        let mut service = Service {
            client: Client::new(self.http.clone(), &address),
            ready_after: Duration::ZERO,
            child,
        };
        while !service.client.is_ready().await {
            ensure!(
                began.elapsed() < START_LIMIT,
                "the service is not ready after {START_LIMIT:?}"
            );
            tokio::time::sleep(POLL).await;
        }
        service.ready_after = began.elapsed();
        Ok(service)
    }
}

/// Returns the settings of a provider that speaks as OpenAI does.
pub(crate) fn provider_settings(name: &str, base_url: String) -> [(String, String); 2] {
    let key = format!("AGENT_RUNTIME__PROVIDERS__{}", name.to_uppercase());
    [
        (format!("{key}__KIND"), "openai_chat".to_owned()),
        (format!("{key}__BASE_URL"), base_url),
    ]
}

impl Service {
    /// Returns the processor time used so far.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        procfs::cpu_time(self.child.id())
    }

    /// Returns the memory in use.
    pub(crate) fn memory(&self) -> Result<Memory> {
        procfs::memory(self.child.id())
    }

    /// Asks the service to end and waits for it.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let status = Command::new("kill")
            .arg("-TERM")
            .arg(self.child.id().to_string())
            .status();
        ensure!(status.context("run kill")?.success(), "the service is gone already");
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            ensure!(
                began.elapsed() < STOP_LIMIT,
                "the service does not end after {STOP_LIMIT:?}"
            );
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Fails only when the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Finds the first loopback address in a line.
fn address_of(line: &str) -> Option<String> {
    let start = line.find("http://127.0.0.1:")?;
    let authority = line[start + "http://".len()..]
        .split(|c: char| c.is_whitespace() || c == '/')
        .next()?;
    Some(format!("http://{authority}"))
}
