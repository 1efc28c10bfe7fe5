"""Applies seccomp profiles of containers, and the filter of a systemd unit, to this process."""

import ctypes
import re
import subprocess

ACTIONS = {"SCMP_ACT_ALLOW": 0x7FFF0000, "SCMP_ACT_ERRNO": 0x00050000}
COMPARISONS = {"SCMP_CMP_EQ": 4}
EPERM = 1


class Comparison(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint), ("op", ctypes.c_int), ("value", ctypes.c_uint64), ("other", ctypes.c_uint64)]


def library():
    """Returns libseccomp, or None."""
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return None
    library.seccomp_init.restype = ctypes.c_void_p
    return library


def action(rule, name):
    number = rule.get("errnoRet", rule.get("defaultErrnoRet", EPERM)) if rule[name] == "SCMP_ACT_ERRNO" else 0
    return ctypes.c_uint32(ACTIONS[rule[name]] | number)


def apply(profile):
    """Applies a profile to this process and to all that it starts. Unknown calls are skipped, as
    container runtimes do."""
    seccomp = library()
    compiled = ctypes.c_void_p(seccomp.seccomp_init(action(profile, "defaultAction")))
    for rule in profile["syscalls"]:
        arguments = [
            Comparison(of["index"], COMPARISONS[of["op"]], of["value"], of.get("valueTwo", 0))
            for of in rule.get("args", [])
        ]
        for name in rule["names"]:
            number = seccomp.seccomp_syscall_resolve_name(name.encode())
            if number < 0:
                continue
            array = (Comparison * max(len(arguments), 1))(*arguments)
            failed = seccomp.seccomp_rule_add_array(compiled, action(rule, "action"), number, len(arguments), array)
            if failed:
                raise OSError(-failed, f"seccomp: the rule for {name}")
    failed = seccomp.seccomp_load(compiled)
    if failed:
        raise OSError(-failed, "seccomp: the filter")


def of_unit(unit):
    """Returns the profile that is the list of refused calls of a unit."""
    refused = re.search(r"^SystemCallFilter=~(.*)$", unit, re.MULTILINE).group(1).split()
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": sorted(calls(refused)), "action": "SCMP_ACT_ERRNO"}],
    }


def calls(names):
    """Returns the system calls of systemd's groups."""
    found = set()
    for name in names:
        if not name.startswith("@"):
            found.add(name)
            continue
        listed = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True)
        lines = [line.strip() for line in listed.stdout.splitlines()]
        members = [line for line in lines if line and not line.startswith("#") and line != name]
        found |= calls(members)
    return found
