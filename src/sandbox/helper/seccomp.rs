//! seccomp: the system calls that the command can't make.
//!
//! Everything is allowed that is not listed, up to the newest call that was reviewed. Calls that
//! need a capability are listed too, for hosts where a command keeps one by mistake.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use super::super::protections::SIGNAL_SCOPE;
use super::super::wire::Restrictions;

/// The newest system call that was reviewed: `removexattrat`, Linux 6.13. All architectures share
/// these numbers. The kernel "does not know" any later one, nor those of the x32 ABI.
const NEWEST: u32 = 466;

/// Refused with "operation not permitted".
const REFUSED: &[c_long] = &[
    // No servers. `CLIENTS` has the rest of the network. No UNIX sockets: those by path are out of
    // Landlock's reach before Linux 7.1. A pair of connected sockets is allowed, see below, and
    // must not be connected anew.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // A message can hold files that no process has open, whose space nobody would count.
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_perf_event_open,
    // Mounts, roots and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Kernel keys, kernel code and the machine.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    // What outlives every process.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Refused too, unless the command may connect to the proxy.
const CLIENTS: &[c_long] = &[libc::SYS_socket, libc::SYS_connect];

#[cfg(target_arch = "x86_64")]
const REFUSED_ON_X86: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_kexec_file_load,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_ON_X86: &[c_long] = &[];

/// Answered with "not implemented", so that programs use something else.
const UNKNOWN: &[c_long] = &[
    // Makes sockets and opens files without the calls above.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Their flags are in memory, where a filter can't look.
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_userfaultfd,
    // Memory that no process has to have mapped.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    // Shows names of files that Landlock hides.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    libc::SYS_inotify_init1,
];

/// Answered with "not supported", so that programs do without.
const UNSUPPORTED: &[c_long] = &[
    // Takes any space at once, before the helper could see that.
    libc::SYS_fallocate,
    // No tree holds extended attributes, of which ACLs are some. The next command may find the
    // files in another directory, without them.
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
];
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;

/// Requests to a file system, answered with "not supported" as well.
const UNSUPPORTED_REQUESTS: [u64; 9] = [
    // `FS_IOC_SETFLAGS`, `FS_IOC_FSSETXATTR`, `FS_IOC_ENABLE_VERITY` and
    // `FS_IOC_SET_ENCRYPTION_POLICY`: no tree holds what they set. `file_setattr`, which does the
    // same, is newer than `NEWEST`.
    0x4008_6602,
    0x401c_5820,
    0x4080_6685,
    0x800c_6613,
    // `FS_IOC_RESVSP`, `FS_IOC_UNRESVSP`, the two of them for 64 bits, and `FS_IOC_ZERO_RANGE`:
    // the same as `fallocate`.
    0x4030_5828,
    0x4030_5829,
    0x4030_582a,
    0x4030_582b,
    0x4030_5839,
];
/// The type of a request: its second byte. That of btrfs makes subvolumes, which no tree holds.
const REQUEST_TYPE: u64 = 0xff00;
const BTRFS: u64 = 0x9400;
/// `FICLONE`, `FICLONERANGE` and `FIDEDUPERANGE` have the same type. `cp` uses them.
const CLONES: [u64; 3] = [0x4004_9409, 0x4020_940d, 0xc018_9436];

/// Refused where Landlock has no scopes: a command could signal every process of its user.
const SIGNALS: &[c_long] = &[
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// Calls with a file mode, and its argument.
const MODES: &[(c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];
const FCHMODAT2: c_long = 452;

/// Calls that act on a process, and the argument that names it. 0 is the caller itself.
const OTHERS: &[(c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
];

/// `PR_SET_DUMPABLE`: hides the files of a process, and on some hosts the process itself.
const SET_DUMPABLE: u64 = 4;
/// `CLONE_THREAD`, and `CLONE_FILES`.
const THREAD: u64 = 0x0001_0000;
const FILES: u64 = 0x0400;
/// `CLOSE_RANGE_UNSHARE`.
const APART: u64 = 2;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Applies the filters to the calling thread and to all that it starts.
pub(super) fn apply(restrictions: &Restrictions) -> Result<(), seccompiler::Error> {
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
    apply_filter(&filter(without_effect(landlock_abi)?, 0)?)?;
    Ok(())
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
fn without_effect(landlock_abi: u32) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    rules.insert(libc::SYS_prctl, any([equal(0, SET_DUMPABLE)])?);
    if landlock_abi < SIGNAL_SCOPE {
        // The scheduler shares processors among sessions: with many, a command could stop the
        // helper from working.
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
    rules.insert(libc::SYS_socketpair, socket_pairs()?);
    let mut clones = any(NAMESPACES.map(|flag| has(0, flag)))?;
    // All threads of a process have the same files, so that those of one show all.
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

/// Refuses all sockets but those of TCP, and all ways to connect them but `connect`, which Landlock
/// judges.
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

/// Refuses all pairs but those of connected UNIX sockets. A datagram socket of a pair can send to
/// any other.
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
