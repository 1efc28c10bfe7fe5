//! Landlock: which files the command may touch, whom it may signal, and to which port it may
//! connect.
//!
//! There are two nested domains. The helper's keeps it from signalling strangers. The command's,
//! inside it, has the rules for files. So the helper can signal the command, and never the reverse.

use std::marker::PhantomData;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, NetPort,
    PathBeneath, PathFd, PathFdError, RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::io::Errno;
use rustix::process::{getppid, test_kill_process};

use super::super::protections::{PROXY_ADDRESS, SIGNAL_SCOPE};
use super::super::wire::Restrictions;
use values::causes::with_causes;

/// The devices that a command may read and write. There is no terminal among them.
const DEVICES: &[&str] = &["/dev/null", "/dev/full", "/dev/random", "/dev/urandom"];
/// A device that may only be read: a program that writes to it can map memory without a limit.
const ZERO: &str = "/dev/zero";

/// An error of Landlock.
#[derive(Debug, thiserror::Error)]
pub(super) enum LandlockError {
    #[error("the kernel refuses the rules")]
    Rules(#[from] RulesetError),
    #[error("a directory can't be opened")]
    Path(#[from] PathFdError),
    #[error("the rules are not in force")]
    NotEnforced,
}

/// Returns the version of Landlock that the kernel has and this binary knows. Restricts the process
/// to find out, in a way that it does not notice.
pub(super) fn version() -> Result<u32, String> {
    let restrict = || {
        Ruleset::default()
            .handle_access(AccessFs::MakeBlock)?
            .create()?
            .restrict_self()
    };
    let status = restrict().map_err(|error: RulesetError| with_causes(&error))?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => Ok(effective_abi as u32),
        LandlockStatus::NotEnabled => Err("it is not enabled".to_owned()),
        LandlockStatus::NotImplemented => Err("it is not built in".to_owned()),
    }
}

/// The proof that the calling thread can signal its own descendants and nobody else. It can't be
/// given to another thread.
#[derive(Debug)]
pub(super) struct SignalDomain(PhantomData<*const ()>);

/// Restricts the calling process to signal only processes that it starts from now on. Returns a
/// proof of that only after it has seen the kernel refuse a signal that it allowed before.
///
/// If mounts follow, files can't be moved between directories afterwards: a domain that allows it
/// forbids mounts.
pub(super) fn confine_signals(abi: u32, mounts_follow: bool) -> Result<Option<SignalDomain>, LandlockError> {
    if abi < SIGNAL_SCOPE {
        return Ok(None);
    }
    let service = getppid().filter(|parent| test_kill_process(*parent).is_ok());
    let rules = required().scope(Scope::Signal)?;
    if mounts_follow {
        restrict(rules.create()?)?;
    } else {
        // Moving files between directories is refused unless every domain allows it.
        let rules = rules.handle_access(AccessFs::Refer)?.create()?;
        restrict(rules.add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::Refer))?)?;
    }
    let is_refused = service.is_some_and(|service| test_kill_process(service) == Err(Errno::PERM));
    Ok(is_refused.then_some(SignalDomain(PhantomData)))
}

/// Confines the calling process to the given directories.
pub(super) fn confine(restrictions: &Restrictions) -> Result<(), LandlockError> {
    let abi = known(restrictions.landlock_abi);
    let mut rules = required().handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V4 {
        rules = rules.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        rules = rules.scope(Scope::from_all(abi))?;
    }
    let mut rules = rules.create()?;
    let (read, write) = (AccessFs::from_read(abi), read_write(abi));
    for path in &restrictions.read_only {
        rules = allow(rules, path, read)?;
    }
    if restrictions.proxy && abi >= ABI::V4 {
        rules = rules.add_rule(NetPort::new(PROXY_ADDRESS.port(), AccessNet::ConnectTcp))?;
    }
    for path in DEVICES {
        rules = allow(rules, Path::new(path), AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    rules = allow(rules, Path::new(ZERO), AccessFs::ReadFile.into())?;
    for binding in &restrictions.bindings {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(&binding.inside)?, write))?;
    }
    restrict(rules)
}

/// Returns the rights in the working directory: all but devices and sockets.
fn read_write(abi: ABI) -> BitFlags<AccessFs> {
    let special =
        AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    AccessFs::from_all(abi) & !special
}

/// Adds a rule for a path, if it exists.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, LandlockError> {
    let Ok(metadata) = path.metadata() else {
        return Ok(rules);
    };
    let for_files = AccessFs::from_file(ABI::V10);
    let access = if metadata.is_dir() { access } else { access & for_files };
    Ok(rules.add_rule(PathBeneath::new(PathFd::new(path)?, access))?)
}

fn known(abi: u32) -> ABI {
    i32::try_from(abi).unwrap_or(i32::MAX).into()
}

/// Begins rules that fail if the kernel can't enforce every one of them.
fn required() -> Ruleset {
    Ruleset::default().set_compatibility(CompatLevel::HardRequirement)
}

fn restrict(rules: RulesetCreated) -> Result<(), LandlockError> {
    let RestrictionStatus { ruleset, .. } = rules.restrict_self()?;
    if ruleset == landlock::RulesetStatus::FullyEnforced {
        Ok(())
    } else {
        Err(LandlockError::NotEnforced)
    }
}
