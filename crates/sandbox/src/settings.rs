//! The settings of the sandbox.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use values::settings::{integer, optional_path};

/// Whether commands are kept in at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Landlock and seccomp are required.
    #[default]
    Enforced,
    /// `isolation = "none"`: a command has all rights of the service. Its environment, limits and
    /// supervision stay. For hosts that are a sandbox themselves.
    None,
}

/// Whether user, mount, network and IPC namespaces are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespaces {
    /// Where the kernel offers them.
    #[default]
    Auto,
    /// The service refuses to start without them.
    Required,
    Off,
}

/// The configuration of the sandbox.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct SandboxSettings {
    pub isolation: Isolation,
    pub namespaces: Namespaces,
    /// The service refuses to start below this version of Landlock: 1 is Linux 5.13, 6 is 6.12.
    #[serde(deserialize_with = "integer::<_, 1, 100, _>")]
    pub landlock_abi: u32,
    /// Landlock is used up to this version, even if the kernel has more. For tests.
    #[serde(skip)]
    pub landlock_abi_limit: u32,
    /// Whether commands are to reach a proxy. This needs namespaces.
    #[serde(skip)]
    pub proxy: bool,
    /// A directory of cgroup v2 that is delegated to the service, if any.
    #[serde(deserialize_with = "optional_path")]
    pub cgroup: Option<PathBuf>,
    /// The helper's binary. It is called with the one argument `sandbox-exec`.
    #[serde(skip)]
    pub helper: PathBuf,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            namespaces: Namespaces::default(),
            landlock_abi: 1,
            landlock_abi_limit: u32::MAX,
            proxy: false,
            cgroup: None,
            // The running binary, even if its file was replaced since.
            helper: "/proc/self/exe".into(),
        }
    }
}
