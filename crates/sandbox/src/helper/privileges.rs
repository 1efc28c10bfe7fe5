//! Gives up capabilities, groups and the means to regain them.

use std::io;

use rustix::io::Errno;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

/// Gives up every capability for good, even as root, and every supplementary group.
pub(super) fn drop_all() -> io::Result<()> {
    // Later steps and executed programs can't gain anything, even if a step below fails.
    rustix::thread::set_no_new_privs(true)?;
    unless_unprivileged(rustix::thread::set_thread_groups(&[]))?;
    for bit in 0..64 {
        // The first capability that the kernel does not know ends the list.
        match rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Err(Errno::INVAL) => break,
            done => unless_unprivileged(done)?,
        }
    }
    // The user id 0 means nothing any more.
    unless_unprivileged(rustix::thread::set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    ))?;
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?;
    Ok(())
}

/// Ignores the error of a process without capabilities, which has none to give up.
fn unless_unprivileged(done: Result<(), Errno>) -> io::Result<()> {
    match done {
        Err(Errno::PERM) => Ok(()),
        done => Ok(done?),
    }
}
