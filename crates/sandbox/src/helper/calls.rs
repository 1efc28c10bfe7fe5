//! The system calls that a command can't make, by the answer that it gets. For some calls, only
//! certain arguments are refused. It has no logic.
//!
//! Calls that need a capability are listed too, for hosts where a command keeps one by mistake.

use libc::c_long;

/// The newest system call that was reviewed: `removexattrat`, Linux 6.13. All architectures share
/// these numbers. The kernel "does not know" later calls and calls of the x32 ABI.
pub(super) const NEWEST: u32 = 466;

/// Refused with "operation not permitted".
pub(super) const REFUSED: &[c_long] = &[
    // No servers. `CLIENTS` has the rest of the network. No UNIX sockets: those by path are out of
    // Landlock's reach before Linux 7.1. A pair of connected sockets is allowed, see below, and
    // must not be connected anew.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // A message can hold files that no process has open, whose space no measurement would count.
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
    // Shared memory, semaphores and queues outlive every process. Their names are small numbers, so
    // that no call is harmless.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
];

/// Refused too, unless the command may connect to the proxy.
pub(super) const CLIENTS: &[c_long] = &[libc::SYS_socket, libc::SYS_connect];

#[cfg(target_arch = "x86_64")]
pub(super) const REFUSED_ON_X86: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS_kexec_file_load,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const REFUSED_ON_X86: &[c_long] = &[];

/// Answered with "not implemented", so that programs use something else.
pub(super) const UNKNOWN: &[c_long] = &[
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
    // A rule holds a removed file, whose space no measurement would count.
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    // Show the mounts and the protections of the host.
    STATMOUNT,
    LISTMOUNT,
    LSM_GET_SELF_ATTR,
    LSM_SET_SELF_ATTR,
    LSM_LIST_MODULES,
    // All users share one number of requests.
    libc::SYS_io_setup,
    libc::SYS_io_destroy,
    libc::SYS_io_submit,
    libc::SYS_io_cancel,
    libc::SYS_io_getevents,
];
pub(super) const STATMOUNT: c_long = 457;
pub(super) const LISTMOUNT: c_long = 458;
pub(super) const LSM_GET_SELF_ATTR: c_long = 459;
pub(super) const LSM_SET_SELF_ATTR: c_long = 460;
pub(super) const LSM_LIST_MODULES: c_long = 461;

/// Answered with "invalid argument", as for a file that does not support it, so that programs copy
/// instead. A pipe would hold pages of memory, even large ones, that no process has mapped any
/// more.
pub(super) const INVALID: &[c_long] = &[libc::SYS_splice, libc::SYS_tee, libc::SYS_vmsplice, libc::SYS_sendfile];

/// `MADV_COLD` and `MADV_PAGEOUT`: move memory to where it is not resident.
pub(super) const MOVES_OUT: [u64; 2] = [20, 21];

/// Mappings of shared memory without a file are at most this large, unless a control group counts
/// their pages. The pages stay if a process takes them out of its page tables, and while it has one
/// of them mapped. So each mapping counts as this much, see [`super::holdings`].
pub(super) const SHARED_BYTES: u64 = 1 << 20;
/// `MAP_SHARED`, `MAP_ANONYMOUS`, and the bits of the first one's kind.
pub(super) const SHARED: u64 = 0x01;
pub(super) const ANONYMOUS: u64 = 0x20;
pub(super) const MAP_KIND: u64 = 0x0f;
/// `MAP_HUGETLB`: such pages count as resident nowhere.
pub(super) const HUGE: u64 = 0x0004_0000;

/// Answered with "not supported", so that programs do without.
pub(super) const UNSUPPORTED: &[c_long] = &[
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
pub(super) const SETXATTRAT: c_long = 463;
pub(super) const REMOVEXATTRAT: c_long = 466;

/// Requests to a file system, answered with "not supported" as well.
pub(super) const UNSUPPORTED_REQUESTS: [u64; 9] = [
    // `FS_IOC_SETFLAGS`, `FS_IOC_FSSETXATTR`, `FS_IOC_ENABLE_VERITY` and
    // `FS_IOC_SET_ENCRYPTION_POLICY`: no tree holds these attributes. `file_setattr`, which does
    // the same, is newer than `NEWEST`.
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
/// The type of a request: its second byte. Requests of btrfs make subvolumes, which no tree holds.
pub(super) const REQUEST_TYPE: u64 = 0xff00;
pub(super) const BTRFS: u64 = 0x9400;
/// `FICLONE`, `FICLONERANGE` and `FIDEDUPERANGE` have the same type. `cp` uses them.
pub(super) const CLONES: [u64; 3] = [0x4004_9409, 0x4020_940d, 0xc018_9436];

/// Refused where Landlock has no scopes: a command could signal every process of its user.
pub(super) const SIGNALS: &[c_long] = &[
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// Calls with a file mode, and its argument.
pub(super) const MODES: &[(c_long, u8)] = &[
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
pub(super) const FCHMODAT2: c_long = 452;

/// Calls that act on a process, and the argument that names it. 0 is the caller itself.
pub(super) const OTHERS: &[(c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
];

/// `PR_SET_DUMPABLE`: hides the files of a process, and on some hosts the process itself.
pub(super) const SET_DUMPABLE: u64 = 4;
/// `PR_SCHED_CORE`: keeps the other half of a processor idle.
pub(super) const SCHED_CORE: u64 = 62;
/// `CLONE_THREAD`, and `CLONE_FILES`.
pub(super) const THREAD: u64 = 0x0001_0000;
pub(super) const FILES: u64 = 0x0400;
/// `CLOSE_RANGE_UNSHARE`.
pub(super) const APART: u64 = 2;
