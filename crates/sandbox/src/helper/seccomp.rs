//! seccomp: the system calls that the command can't make.
//!
//! Everything is allowed that [`super::calls`] does not list, up to the newest call that was
//! reviewed.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use super::super::protections::SIGNAL_SCOPE;
use super::super::wire::Restrictions;
use super::calls::{
    ANONYMOUS, APART, BTRFS, CLIENTS, CLONES, FILES, HUGE, INVALID, MAP_KIND, MODES, MOVES_OUT, NEWEST, OTHERS,
    REFUSED, REFUSED_ON_X86, REQUEST_TYPE, SCHED_CORE, SET_DUMPABLE, SHARED, SHARED_BYTES, SIGNALS, THREAD, UNKNOWN,
    UNSUPPORTED, UNSUPPORTED_REQUESTS,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Applies the filters to the calling thread and to all that it starts. `allows_sessions` is
/// whether a command may begin sessions of its own.
pub(super) fn apply(restrictions: &Restrictions, allows_sessions: bool) -> Result<(), seccompiler::Error> {
    let landlock_abi = restrictions.landlock_abi;
    let mut rules = refused(landlock_abi)?;
    if restrictions.proxy {
        rules.extend(clients_of_tcp()?);
    } else {
        rules.extend(always(CLIENTS));
    }
    let refused = filter(rules, libc::EPERM)?;
    let mut unknown = filter(always(UNKNOWN).collect(), libc::ENOSYS)?;
    unknown.splice(0..0, refuse_newer());
    apply_filter(&refused)?;
    apply_filter(&unknown)?;
    apply_filter(&filter(unsupported()?, libc::EOPNOTSUPP)?)?;
    apply_filter(&filter(invalid()?, libc::EINVAL)?)?;
    apply_filter(&filter(without_memory(restrictions.control_group)?, libc::ENOMEM)?)?;
    apply_filter(&filter(
        without_effect(allows_sessions && landlock_abi >= SIGNAL_SCOPE)?,
        0,
    )?)?;
    Ok(())
}

/// Returns the calls that seem to have invalid arguments.
fn invalid() -> Result<Rules, BackendError> {
    let mut rules: Rules = always(INVALID).collect();
    rules.insert(libc::SYS_madvise, any(MOVES_OUT.map(|advice| equal(2, advice)))?);
    Ok(rules)
}

/// Returns the mappings for which there seems to be no memory.
fn without_memory(has_control_group: bool) -> Result<Rules, BackendError> {
    let mut mappings = any([has(3, HUGE)])?;
    if !has_control_group {
        let is_shared = masked(3, MAP_KIND | ANONYMOUS, SHARED | ANONYMOUS)?;
        let is_large = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Gt, SHARED_BYTES)?;
        mappings.push(rule([is_shared, is_large])?);
    }
    Ok(Rules::from([(libc::SYS_mmap, mappings)]))
}

/// Returns the calls that are not supported.
fn unsupported() -> Result<Rules, BackendError> {
    let mut rules: Rules = always(UNSUPPORTED).collect();
    let mut requests = any(UNSUPPORTED_REQUESTS.map(|request| equal(1, request)))?;
    let [clone, range, same] = CLONES;
    let is_of_btrfs = masked(1, REQUEST_TYPE, BTRFS)?;
    requests.push(rule([is_of_btrfs, not(1, clone)?, not(1, range)?, not(1, same)?])?);
    rules.insert(libc::SYS_ioctl, requests);
    Ok(rules)
}

/// Returns the calls that pretend to succeed.
fn without_effect(allows_sessions: bool) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    rules.insert(libc::SYS_prctl, any([equal(0, SET_DUMPABLE)])?);
    if !allows_sessions {
        rules.insert(libc::SYS_setsid, Vec::new());
    }
    Ok(rules)
}

/// Matches calls with any arguments.
fn always(calls: &[c_long]) -> impl Iterator<Item = (i64, Vec<SeccompRule>)> {
    calls.iter().map(|call| (*call, Vec::new()))
}

fn filter(rules: Rules, error: i32) -> Result<BpfProgram, BackendError> {
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?.try_into()
}

/// Instructions that answer every call after [`NEWEST`] with "not implemented".
fn refuse_newer() -> [sock_filter; 3] {
    let instruction = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    [
        // Load the number of the call, which comes first in `seccomp_data`.
        instruction(0x20, 0, 0),
        // Skip one instruction unless it is greater.
        instruction(0x25, 1, NEWEST),
        // Return this action.
        instruction(0x06, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}

fn refused(landlock_abi: u32) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    rules.extend(always(REFUSED).chain(always(REFUSED_ON_X86)));
    if landlock_abi < 3 {
        // Landlock 3 was the first to judge it.
        rules.insert(libc::SYS_truncate, Vec::new());
    }
    if landlock_abi < SIGNAL_SCOPE {
        rules.extend(always(SIGNALS));
        // The own process group alone, which the helper is not in.
        rules.insert(libc::SYS_kill, vec![rule([not(0, 0)?])?]);
        // The kernel signals the owner of a file: F_SETOWN, F_SETSIG, F_SETOWN_EX.
        rules.insert(libc::SYS_fcntl, any([8, 10, 15].map(|command| equal(1, command)))?);
        // FIOSETOWN, SIOCSPGRP.
        rules.insert(libc::SYS_ioctl, any([0x8901, 0x8902].map(|request| equal(1, request)))?);
    }
    rules.insert(libc::SYS_prctl, any([equal(0, SCHED_CORE)])?);
    rules.insert(libc::SYS_socketpair, socket_pairs()?);
    let mut clones = any(NAMESPACES.map(|flag| has(0, flag)))?;
    // All threads of a process share their files, so the files of one thread are the files of all.
    clones.push(rule([masked(0, THREAD | FILES, THREAD)?])?);
    rules.insert(libc::SYS_clone, clones);
    rules.insert(libc::SYS_close_range, any([has(2, APART)])?);
    for (call, process) in OTHERS {
        rules.insert(*call, vec![rule([not(*process, 0)?])?]);
    }
    // Of all that they may act on, a process is 0 and 1.
    rules
        .entry(libc::SYS_setpriority)
        .or_default()
        .push(rule([not(0, 0)?])?);
    rules.entry(libc::SYS_ioprio_set).or_default().push(rule([not(0, 1)?])?);
    for (call, mode) in MODES {
        rules.insert(*call, any(SET_ID.map(|bit| has(*mode, bit)))?);
    }
    rules.insert(libc::SYS_openat, creating(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, creating(1)?);
    Ok(rules)
}

/// New user, mount, network, process, IPC, host name and cgroup namespaces.
const NAMESPACES: [u64; 7] = [
    0x1000_0000,
    0x0002_0000,
    0x4000_0000,
    0x2000_0000,
    0x0800_0000,
    0x0400_0000,
    0x0200_0000,
];

/// The bits of a file mode that lend the owner's or the group's rights to the user who executes it.
const SET_ID: [u64; 2] = [0o4000, 0o2000];

/// Refuses all sockets except TCP, and all ways to connect them except `connect`, which Landlock
/// checks.
fn clients_of_tcp() -> Result<Rules, BackendError> {
    const STREAM: u64 = 1;
    const FAST_OPEN: u64 = 0x2000_0000;
    let is_no_internet = [not(0, libc::AF_INET as u64)?, not(0, libc::AF_INET6 as u64)?];
    let is_no_tcp = [not(2, 0)?, not(2, libc::IPPROTO_TCP as u64)?];
    let mut sockets = vec![rule(is_no_internet)?, rule(is_no_tcp)?];
    // The higher bits are flags.
    for kind in (0..=0xf).filter(|kind| *kind != STREAM) {
        sockets.push(rule([masked(1, 0xf, kind)?])?);
    }
    let mut rules = Rules::from([(libc::SYS_socket, sockets)]);
    rules.insert(libc::SYS_sendto, any([has(3, FAST_OPEN)])?);
    Ok(rules)
}

/// Refuses all pairs except pairs of connected UNIX sockets. A datagram socket of a pair can send
/// to any other.
fn socket_pairs() -> Result<Vec<SeccompRule>, BackendError> {
    let kind = |number| masked(1, 0xf, number);
    Ok(vec![rule([not(0, 1)?])?, rule([kind(2)?])?, rule([kind(3)?])?])
}

/// Refuses to create files with the bits of [`SET_ID`]. The mode follows the flags.
fn creating(flags: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let mut rules = Vec::new();
    // O_CREAT, and the bit of O_TMPFILE that no other flag has.
    for create in [0o100, 0o20_000_000] {
        for bit in SET_ID {
            rules.push(rule([has(flags, create)?, has(flags + 1, bit)?])?);
        }
    }
    Ok(rules)
}

/// Matches if one of the conditions holds.
fn any<const N: usize>(
    conditions: [Result<SeccompCondition, BackendError>; N],
) -> Result<Vec<SeccompRule>, BackendError> {
    conditions.into_iter().map(|condition| rule([condition?])).collect()
}

/// Matches if all conditions hold.
fn rule<const N: usize>(conditions: [SeccompCondition; N]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into())
}

fn equal(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn not(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn has(argument: u8, bit: u64) -> Result<SeccompCondition, BackendError> {
    masked(argument, bit, bit)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}
