//! Tries out on this process which protections hold, and checks that they do.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};

use nix::sched::CloneFlags;
use rustix::process::getpid;

use super::super::command::WORKSPACE;
use super::super::protections::{Protections, SIGNAL_SCOPE};
use super::super::settings::Isolation;
use super::super::wire::{self, Binding, ProbeTask, Restrictions};
use super::{Step as _, StepError, cgroup, init, landlock, namespaces, network, privileges, seccomp};
use values::causes::with_causes;

/// Writes the protections that hold to standard output.
pub(super) fn probe(task: &ProbeTask) -> Result<(), StepError> {
    let protections = try_out(task);
    let frame = wire::protections_frame(&protections).step("encode the protections")?;
    io::stdout().write_all(&frame).step("report the protections")
}

fn try_out(task: &ProbeTask) -> Protections {
    let mut restrictions = Restrictions {
        isolation: Isolation::Enforced,
        landlock_abi: 0,
        namespaces: task.namespaces,
        pid_namespace: false,
        proxy: task.proxy,
        control_group: false,
        read_only: Vec::new(),
        bindings: vec![Binding {
            outside: task.directory.clone(),
            inside: WORKSPACE.into(),
        }],
    };
    // A child of this process must be started before it restricts itself.
    let cgroup = task.cgroup.as_deref().map(|delegated| {
        let name = format!("probe-{}", getpid());
        cgroup::try_out(delegated, &name).map_err(|error| with_causes(&error))
    });
    // Commands get a network and a PID namespace before all else, from their helper.
    let helper_namespaces = if task.namespaces {
        namespaces::enter_user_and(CloneFlags::empty()).map_err(|error| with_causes(&error))
    } else {
        Err("it needs isolation and namespaces, which are switched off".to_owned())
    };
    let proxy = match (task.proxy, &helper_namespaces) {
        (false, _) => Ok(None),
        (true, Ok(())) => network::enter().map(Some).map_err(|error| with_causes(&error)),
        (true, Err(error)) => Err(error.clone()),
    };
    let pid_namespace = helper_namespaces.and_then(|()| init::try_out().map_err(|error| with_causes(&error)));
    let namespace_error = if task.namespaces {
        namespaces::enter(&restrictions).err().map(|error| with_causes(&error))
    } else {
        Some("switched off".to_owned())
    };
    if namespace_error.is_some() {
        restrictions.bindings[0].inside.clone_from(&task.directory);
    }
    let version = landlock::version().map(|abi| abi.min(task.landlock_abi_limit));
    restrictions.landlock_abi = version.clone().unwrap_or_default();
    let confined = version.and_then(|_| privileges_and_landlock(&restrictions).map_err(|error| with_causes(&error)));
    let refused = seccomp::apply(&restrictions, false)
        .step("apply seccomp")
        .and_then(|()| sockets_are_refused());
    let proxy = proxy.and_then(|listener| match listener {
        Some(listener) => reach(&listener).map_err(|error| with_causes(&error)),
        None => Ok(()),
    });
    Protections {
        isolation: task.isolation,
        landlock_abi: if confined.is_ok() { restrictions.landlock_abi } else { 0 },
        landlock_error: confined.err(),
        seccomp_error: refused.err().map(|error| with_causes(&error)),
        namespace_error,
        pid_namespace_error: pid_namespace.err(),
        proxy_error: proxy.err(),
        cgroup: matches!(cgroup, Some(Ok(()))),
        cgroup_error: cgroup.and_then(Result::err),
    }
}

/// Connects to the listener, with all restrictions in force.
fn reach(listener: &TcpListener) -> Result<(), StepError> {
    let address = listener.local_addr().step("find the proxy's port")?;
    let stream = TcpStream::connect(address).step("connect to the proxy's port")?;
    let elsewhere = TcpStream::connect((address.ip(), address.port() + 1));
    drop(stream);
    match elsewhere {
        Ok(_) => Err("another port can be connected to").step("rely on the network"),
        Err(_) => Ok(()),
    }
}

fn privileges_and_landlock(restrictions: &Restrictions) -> Result<(), StepError> {
    privileges::drop_all().step("drop privileges")?;
    let domain = landlock::confine_signals(restrictions.landlock_abi, false).step("apply Landlock's scopes")?;
    landlock::confine(restrictions).step("apply Landlock")?;
    if File::open("/").is_ok() {
        return Err("the root directory can be opened").step("rely on Landlock");
    }
    if restrictions.landlock_abi >= SIGNAL_SCOPE && domain.is_none() {
        return Err("the service can be signalled").step("rely on Landlock's scopes");
    }
    Ok(())
}

fn sockets_are_refused() -> Result<(), StepError> {
    match std::os::unix::net::UnixDatagram::unbound() {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(()),
        Err(error) => Err(error).step("rely on seccomp"),
        Ok(_) => Err("a socket can be made").step("rely on seccomp"),
    }
}
