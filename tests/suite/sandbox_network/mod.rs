//! The network of commands: real programs in the sandbox, and the proxy that is all they reach.

mod containment;
mod hosts;
mod limits;
mod secrets;
mod tool;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use net::egress::{EgressLimits, EgressPorts, EgressProxy};
use net::outgoing::{AddressRules, NameResolver, PrivateAddresses, RuleKeys, SystemResolver};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use sandbox::{CommandSpec, Exit, NetworkSlot, Output, Sandbox, SandboxSettings, SandboxUnavailable};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The only host that is not public and that commands may reach in these tests.
const PERMITTED: &str = "127.0.0.1/32";

const LIMITS: EgressLimits = EgressLimits {
    connections: 8,
    bytes: 64 << 20,
    connect_timeout: Duration::from_secs(5),
    idle_timeout: Duration::from_secs(20),
    connection_time: Duration::from_mins(1),
};

/// A sandbox whose commands have a network, with a directory.
struct World {
    sandbox: Sandbox,
    directory: TempDir,
    proxy: Arc<EgressProxy>,
}

/// The output of a command, and its end.
#[derive(Debug)]
struct Ended {
    text: String,
    exit: Exit,
}

impl World {
    /// Makes a sandbox with a proxy. Returns `None` on a host where commands can have no network;
    /// that is a failure where namespaces work.
    async fn new(proxy: Arc<EgressProxy>) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        match Sandbox::probe(settings(), directory.path()).await {
            Ok(sandbox) => {
                for name in ["files", "scratch"] {
                    std::fs::create_dir(directory.path().join(name)).unwrap();
                }
                Some(Self {
                    sandbox,
                    directory,
                    proxy,
                })
            }
            Err(SandboxUnavailable::TooWeak { missing, .. }) if !has_namespaces() => {
                eprintln!("left out: {missing}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn spec(&self, program: &str, arguments: &[&str]) -> CommandSpec {
        let mut spec = CommandSpec::new(program, self.path("files"), self.path("scratch"));
        spec.arguments = arguments.iter().map(Into::into).collect();
        let proxy = "http://127.0.0.1:3128".to_owned();
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY"] {
            spec.variables.insert(name.to_owned(), proxy.clone());
        }
        spec.limits.wall_time = Duration::from_mins(1);
        spec
    }

    /// Runs a command that may use the proxy.
    async fn run(&self, program: &str, arguments: &[&str]) -> Ended {
        self.run_spec(self.spec(program, arguments)).await
    }

    async fn run_spec(&self, mut spec: CommandSpec) -> Ended {
        let (slot, mut listener) = NetworkSlot::new();
        spec.network = Some(slot);
        let serving = async {
            if let Some(listener) = listener.recv().await {
                Arc::clone(&self.proxy).serve(listener).await.unwrap();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = self.run_alone(spec) => ended,
            () = serving => panic!("the proxy ended"),
        }
    }

    /// Runs a command as it is.
    async fn run_alone(&self, spec: CommandSpec) -> Ended {
        let mut text = Vec::new();
        let add = |output| {
            let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
            text.extend_from_slice(&bytes);
        };
        let end = self.sandbox.run(spec, add, CancellationToken::new()).await;
        Ended {
            text: String::from_utf8_lossy(&text).into_owned(),
            exit: end.exit,
        }
    }

    /// Runs `curl` and returns what it printed.
    async fn curl(&self, arguments: &[&str]) -> Ended {
        self.run("/usr/bin/curl", &[&["-sS", "--max-time", "30"], arguments].concat())
            .await
    }

    async fn python(&self, program: &str) -> Ended {
        self.run("/usr/bin/python3", &["-c", program]).await
    }
}

fn settings() -> SandboxSettings {
    SandboxSettings {
        proxy: true,
        helper: env!("CARGO_BIN_EXE_agent-runtime").into(),
        ..SandboxSettings::default()
    }
}

/// Returns whether this host has namespaces, as another program finds out.
pub(crate) fn has_namespaces() -> bool {
    let tried = Command::new("unshare").args(["-Urn", "true"]).status();
    tried.is_ok_and(|status| status.success())
}

fn rules(hosts: &[&str]) -> AddressRules {
    AddressRules {
        allow_http: true,
        private: PrivateAddresses::In(vec![PERMITTED.parse().unwrap()]),
        allow_hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
        ..AddressRules::public(RuleKeys {
            allow_http: "ports",
            private: "allow_networks",
        })
    }
}

/// Makes a proxy with these limits.
fn proxy_within(limits: EgressLimits) -> Arc<EgressProxy> {
    EgressProxy::new(
        rules(&["127.0.0.1"]),
        limits,
        Vec::new(),
        ports(Arc::new(SystemResolver), "authority.pem"),
    )
    .unwrap()
}

/// Makes a proxy for these hosts, which resolves names as the system does.
fn proxy_for(hosts: &[&str]) -> Arc<EgressProxy> {
    proxy_with(hosts, Arc::new(SystemResolver))
}

fn proxy_with(hosts: &[&str], resolver: Arc<dyn NameResolver>) -> Arc<EgressProxy> {
    EgressProxy::new(rules(hosts), LIMITS, Vec::new(), ports(resolver, "authority.pem")).unwrap()
}

/// Makes ports that trust one authority of the tests.
fn ports(resolver: Arc<dyn NameResolver>, trusted: &str) -> EgressPorts {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certificate(trusted)).unwrap())
        .unwrap();
    EgressPorts {
        resolver,
        tls: ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth(),
    }
}

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/certificates")
        .join(name)
}

#[tokio::test]
async fn without_namespaces_the_reason_is_named() {
    use sandbox::{Isolation, Namespaces};

    let directory = tempfile::tempdir().unwrap();
    for settings in [
        SandboxSettings {
            namespaces: Namespaces::Off,
            ..settings()
        },
        SandboxSettings {
            isolation: Isolation::None,
            ..settings()
        },
    ] {
        let error = Sandbox::probe(settings, directory.path()).await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("commands have no network on this host (it needs"),
            "{text}"
        );
    }
    assert!(Path::new("/proc/self/ns/net").exists());
}
