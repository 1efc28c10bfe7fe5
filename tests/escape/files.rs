//! Files outside of the working directory.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use sandbox::{Exit, Namespaces, SandboxSettings};

use super::harness::{Area, SECRET};

#[tokio::test]
async fn no_file_outside_is_readable() {
    let area = Area::new();
    let script = r#"
        ln -s "$AREA/secret" link
        ln -s "$AREA" area
        ln -s / root
        for file in /etc/shadow /etc/gshadow /etc/ssl/private /etc/hostname "$AREA/secret" ../secret link \
            area/secret "root$AREA/secret" "$AREA/other/file" ../other/file "/proc/self/root$AREA/secret" \
            /proc/$SERVICE/environ /proc/$SERVICE/maps /proc/$SERVICE/mem /proc/$PPID/environ /proc/1/environ \
            /proc/$SERVICE/root/etc/shadow "/proc/$SERVICE/cwd" /proc/$SERVICE/fd /proc/$SERVICE/fd/0 \
            /proc/$SERVICE/task/$SERVICE/environ /proc/$PPID/mem /proc/$PPID/fd /proc/$PPID/fd/0 /proc/$PPID/fd/1 \
            /proc/self/environ /proc/self/fd /proc/thread-self/mem /proc/version /proc/kallsyms /proc/keys /sys/kernel/notes /boot /root \
            /dev/mem /dev/kmsg /dev/vda /dev/sda /dev/tty /dev/ptmx /dev/fuse /dev/shm /tmp /var /home /run
        do
            if cat "$file" >/dev/null 2>&1; then echo "read $file"; fi
            if ls "$file/" >/dev/null 2>&1; then echo "listed $file"; fi
        done
        echo done"#;
    area.prints(area.bash(script), "done").await;
}

#[tokio::test]
async fn no_file_outside_can_be_changed() {
    let area = Area::new();
    let before = fs::metadata(area.path("secret")).unwrap();
    let script = r#"
        exec 2>/dev/null
        ln -sf "$AREA" area
        touch inside
        echo x >> "$AREA/secret" && echo appended
        echo x > "$AREA/secret" && echo written
        echo x > "$AREA/new" && echo created
        echo x > area/new && echo created by a link
        mkdir "$AREA/new" && echo made
        rm "$AREA/secret" && echo removed
        mv "$AREA/secret" "$AREA/moved" && echo renamed
        mv "$AREA/secret" . && echo taken
        mv inside "$AREA/" && echo given
        mv inside "$AREA/secret" && echo replaced
        ln "$AREA/secret" hard && echo linked
        ln inside "$AREA/hard" && echo linked out
        ln -s inside "$AREA/soft" && echo linked softly
        mv "$AREA/other" . && echo took a directory
        rmdir "$AREA/scratch" && echo removed a directory
        mv "$AREA/work" "$AREA/elsewhere" && echo moved its own directory
        truncate -s 0 "$AREA/secret" && echo truncated
        python3 -c 'import os; os.truncate(os.environ["AREA"] + "/secret", 0)' && echo truncated by path
        mkfifo "$AREA/fifo" && echo made a pipe
        touch /usr/bin/new /etc/new /tmp/new /dev/new /dev/shm/new /new && echo made elsewhere
        echo done"#;
    area.prints(area.bash(script), "done").await;
    area.assert_secrets_are_untouched();
    let after = fs::metadata(area.path("secret")).unwrap();
    assert_eq!((before.mode(), before.nlink()), (after.mode(), after.nlink()));
}

/// Programs such as git rename files between directories, and do not copy them instead.
#[tokio::test]
async fn files_move_between_directories() {
    let area = Area::new();
    let script = r#"
import os
os.mkdir("a"); os.mkdir("b"); open("a/file", "w").close()
os.rename("a/file", "b/file"); os.rename("a", "b/a"); os.link("b/file", "b/a/file")
print(sorted(os.listdir("b")), os.listdir("b/a"))"#;
    let moved = "['a', 'file'] ['file']";
    for sandbox in [area.sandbox().await, area.plain().await] {
        let ran = area.run(&sandbox, area.python(script)).await;
        assert_eq!(ran.stdout.trim(), moved, "{}: {}", sandbox.protections(), ran.stderr);
        area.empty_but("");
    }
}

/// Landlock does not judge these. A mount namespace with read-only mounts does.
#[tokio::test]
async fn namespaces_keep_a_command_from_changing_modes_and_times_outside() {
    let area = Area::new();
    let settings = SandboxSettings {
        namespaces: Namespaces::Required,
        ..Area::settings()
    };
    let sandbox = match area.probe(settings).await {
        Ok(sandbox) => sandbox,
        Err(error) => return eprintln!("not tested: {error}"),
    };
    let before = fs::metadata(area.path("secret")).unwrap();
    let script = r#"
        exec 2>/dev/null
        chmod 777 "$AREA/secret" && echo changed the mode
        touch "$AREA/secret" && echo touched
        chown "$(id -u)" "$AREA/secret" && echo owned
        python3 -c 'import os; os.utime(os.environ["AREA"] + "/secret", (1, 1))' && echo changed the time
        python3 -c 'import os; os.setxattr(os.environ["AREA"] + "/secret", "user.a", b"b")' && echo labelled
        touch inside && chmod 700 inside && echo done"#;
    let ran = area.run(&sandbox, area.bash(script)).await;
    assert_eq!(ran.stdout, "done\n");
    let after = fs::metadata(area.path("secret")).unwrap();
    assert_eq!(
        (before.mode(), before.mtime(), before.ctime()),
        (after.mode(), after.mtime(), after.ctime())
    );
    area.assert_secrets_are_untouched();
}

#[tokio::test]
async fn no_device_and_no_program_with_rights_can_be_made() {
    let area = Area::new();
    let script = r#"
        exec 2>/dev/null
        mknod null c 1 3 && echo made a device
        mknod disk b 254 0 && echo made a disk
        mknod whiteout c 0 0 && echo made a whiteout
        cp /bin/true mine && chmod u+s mine && echo set the user id
        chmod g+s mine && echo set the group id
        python3 -c 'import os; os.close(os.open("born", os.O_CREAT | os.O_WRONLY, 0o4755))' && echo born with it
        python3 -c 'import os; os.mknod("node", 0o104755)' && echo made with it
        chmod 755 mine && ./mine && mkfifo pipe && echo done"#;
    area.prints(area.bash(script), "done").await;
    for entry in fs::read_dir(area.work()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o6000, 0, "{entry:?}");
    }
}

/// Others lead the same path inside and outside in turn.
#[tokio::test]
async fn no_race_leads_outside() {
    let area = Area::new();
    let script = r#"
import os, threading, time
area = os.environ["AREA"]
os.makedirs("inside"); open("inside/file", "w").write("x")
os.symlink(area + "/other", "link"); os.symlink(area + "/secret", "secret"); open("mine", "w").write("x")
end = time.monotonic() + 1
def attempt(action):
    try: return action()
    except OSError: return None
def swap(a, b):
    while time.monotonic() < end:
        for pair in ((a, "swap" + a), (b, a), ("swap" + a, b)): attempt(lambda: os.rename(*pair))
for pair in (("inside", "link"), ("mine", "secret")): threading.Thread(target=swap, args=pair).start()
while time.monotonic() < end:
    for name in ("inside/file", "mine"):
        if attempt(lambda: open(name).read()) not in (None, "", "x"): print("read", name)
        attempt(lambda: os.truncate(name, 1))
    attempt(lambda: open("inside/new", "w").close())
    attempt(lambda: os.link("mine", "linked"))
    attempt(lambda: os.rename("inside/file", "taken"))
    attempt(lambda: os.rename("taken", "inside/file"))
    attempt(lambda: os.unlink("linked"))
print("done")"#;
    area.prints(area.python(script), "done").await;
    area.assert_secrets_are_untouched();
}

#[tokio::test]
async fn nothing_outside_can_be_watched() {
    let area = Area::new();
    let script = r"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.inotify_init1(0), ctypes.get_errno(), libc.fanotify_init(0, 0), ctypes.get_errno())";
    area.prints(area.python(script), "-1 38 -1 1").await;
}

#[tokio::test]
async fn a_command_starts_inside_its_directory() {
    let area = Area::new();
    fs::create_dir_all(area.work().join("a/b")).unwrap();
    std::os::unix::fs::symlink("a", area.work().join("inside")).unwrap();
    std::os::unix::fs::symlink(area.path("other"), area.work().join("outside")).unwrap();
    std::os::unix::fs::symlink("../other", area.work().join("above")).unwrap();
    for (tier, sandbox) in area.tiers().await {
        for (cwd, is_inside) in [
            ("", true),
            (".", true),
            ("a/b", true),
            ("inside/b", true),
            ("a/../a", true),
            ("outside", false),
            ("above", false),
            ("..", false),
            ("a/../../other", false),
            ("missing", false),
        ] {
            let mut spec = area.spec("pwd", &["-P"]);
            spec.cwd = area.work().join(cwd);
            let ran = area.run(&sandbox, spec).await;
            let has_failed = matches!(ran.end.exit, Exit::Failed { .. });
            assert_eq!(!has_failed, is_inside, "{tier}: {cwd}: {:?}", ran.end.exit);
        }
        let mut spec = area.spec("pwd", &[]);
        spec.cwd = area.path("other");
        let ran = area.run(&sandbox, spec).await;
        assert!(matches!(ran.end.exit, Exit::Failed { .. }), "{tier}");
        assert!(!ran.stdout.contains(SECRET));
    }
}
