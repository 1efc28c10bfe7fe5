//! The protections of this host: tried out once, printed as one line, compared with the required
//! ones.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};

use super::settings::{Isolation, Namespaces, SandboxSettings};

/// Since this version, Landlock keeps a command from sending signals to others.
pub(super) const SIGNAL_SCOPE: u32 = 6;

/// Where a command reaches the proxy, in the network of its own.
pub const PROXY_ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);

/// The protections of this host. Each one was applied and tried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protections {
    /// Whether they are used at all.
    pub isolation: Isolation,
    /// The version of Landlock in use. 0 if there is none.
    pub landlock_abi: u32,
    /// Why there is no Landlock.
    pub landlock_error: Option<String>,
    /// Why there is no seccomp, if so.
    pub seccomp_error: Option<String>,
    /// Why there are no user and mount namespaces, if so.
    pub namespace_error: Option<String>,
    /// Why there is no PID namespace, if so.
    pub pid_namespace_error: Option<String>,
    /// Why commands can't reach the proxy, if so. `None` as well if they need not.
    pub proxy_error: Option<String>,
    /// Whether each command has a control group, which limits its memory and its processes.
    pub cgroup: bool,
    /// Why commands have no control group, although the settings name a directory for them.
    pub cgroup_error: Option<String>,
}

impl Protections {
    /// Returns why these are too few for the settings, if so.
    pub(super) fn shortfall(&self, settings: &SandboxSettings) -> Option<String> {
        if let Some(error) = &self.proxy_error {
            return Some(format!("commands have no network on this host ({error})"));
        }
        if let Some(error) = &self.cgroup_error {
            return Some(format!("commands can't have control groups ({error})"));
        }
        if self.isolation == Isolation::None {
            return None;
        }
        if let Some(error) = &self.landlock_error {
            return Some(format!("the kernel offers no Landlock ({error})"));
        }
        if let Some(error) = &self.seccomp_error {
            return Some(format!("the kernel offers no seccomp filters ({error})"));
        }
        if self.landlock_abi < settings.landlock_abi {
            let (has, wanted) = (self.landlock_abi, settings.landlock_abi);
            return Some(format!("landlock abi {wanted} is required, the kernel has {has}"));
        }
        match self.namespace_error.as_ref().or(self.pid_namespace_error.as_ref()) {
            Some(error) if settings.namespaces == Namespaces::Required => {
                Some(format!("namespaces are required and missing ({error})"))
            }
            Some(_) | None => None,
        }
    }
}

impl fmt::Display for Protections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.isolation == Isolation::None {
            return f.write_str("none, commands may do what the service may do");
        }
        match self.landlock_abi {
            0 => f.write_str("no landlock")?,
            abi => write!(f, "landlock abi {abi}")?,
        }
        f.write_str(if self.seccomp_error.is_none() {
            ", seccomp"
        } else {
            ", no seccomp"
        })?;
        if self.landlock_abi < SIGNAL_SCOPE {
            f.write_str(", signals denied")?;
        }
        f.write_str(match (&self.namespace_error, &self.pid_namespace_error) {
            (None, None) => ", user, PID and mount namespaces",
            (None, Some(_)) => ", user and mount namespaces, no PID namespace",
            (Some(_), _) => ", no user namespace",
        })?;
        // Without one, the helper keeps the limits.
        f.write_str(if self.cgroup { ", cgroup" } else { ", no cgroup" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Protections {
        Protections {
            isolation: Isolation::Enforced,
            landlock_abi: 7,
            landlock_error: None,
            seccomp_error: None,
            namespace_error: None,
            pid_namespace_error: None,
            proxy_error: None,
            cgroup: false,
            cgroup_error: None,
        }
    }

    #[test]
    fn one_line_says_what_holds() {
        let line = all().to_string();
        assert_eq!(
            line,
            "landlock abi 7, seccomp, user, PID and mount namespaces, no cgroup"
        );
        let error = Some("EPERM".to_owned());
        let shared = Protections {
            pid_namespace_error: error.clone(),
            ..all()
        };
        assert_eq!(
            shared.to_string(),
            "landlock abi 7, seccomp, user and mount namespaces, no PID namespace, no cgroup"
        );
        let few = Protections {
            landlock_abi: 3,
            namespace_error: error.clone(),
            ..all()
        };
        assert_eq!(
            few.to_string(),
            "landlock abi 3, seccomp, signals denied, no user namespace, no cgroup"
        );
        let none = Protections {
            landlock_abi: 0,
            landlock_error: error.clone(),
            seccomp_error: error,
            ..few
        };
        assert_eq!(
            none.to_string(),
            "no landlock, no seccomp, signals denied, no user namespace, no cgroup"
        );
        let limited = Protections { cgroup: true, ..all() };
        assert_eq!(
            limited.to_string(),
            "landlock abi 7, seccomp, user, PID and mount namespaces, cgroup"
        );
        let unused = Protections {
            isolation: Isolation::None,
            ..all()
        };
        assert_eq!(unused.to_string(), "none, commands may do what the service may do");
    }

    #[test]
    fn what_is_required_and_missing_is_named() {
        let missing = |protections: Protections, change: fn(&mut SandboxSettings)| {
            let mut settings = SandboxSettings::default();
            change(&mut settings);
            protections.shortfall(&settings)
        };
        let error = Some("EPERM".to_owned());
        assert_eq!(missing(all(), |_| ()), None);
        let required = |settings: &mut SandboxSettings| settings.namespaces = Namespaces::Required;
        assert_eq!(missing(all(), required), None);
        let unshared = Protections {
            namespace_error: error.clone(),
            ..all()
        };
        let shared = Protections {
            pid_namespace_error: error.clone(),
            ..all()
        };
        for few in [unshared, shared] {
            assert_eq!(missing(few.clone(), |_| ()), None);
            assert!(missing(few, required).unwrap().contains("EPERM"));
        }
        assert!(
            missing(all(), |settings| settings.landlock_abi = 8)
                .unwrap()
                .contains("abi 8")
        );
        let bare = Protections {
            landlock_abi: 0,
            landlock_error: error,
            ..all()
        };
        assert!(missing(bare.clone(), |_| ()).unwrap().contains("no Landlock"));
        let unused = Protections {
            isolation: Isolation::None,
            ..bare
        };
        assert_eq!(missing(unused.clone(), |_| ()), None);
        for protections in [unused, all()] {
            let cut_off = Protections {
                proxy_error: Some("ENOSPC".to_owned()),
                ..protections.clone()
            };
            let unlimited = Protections {
                cgroup_error: Some("EBUSY".to_owned()),
                ..protections
            };
            for (few, message) in [
                (cut_off, "commands have no network on this host (ENOSPC)"),
                (unlimited, "commands can't have control groups (EBUSY)"),
            ] {
                assert_eq!(missing(few, |_| ()).unwrap(), message);
            }
        }
    }
}
