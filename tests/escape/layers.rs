//! A working directory with layers: what shows through is out of reach.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;

use agent_runtime::sandbox::{CommandSpec, Exit, Overlay, Sandbox};

use super::harness::{Area, names};

/// An area whose working directory has layers, and a sandbox that can mount them.
struct Layered {
    area: Area,
    overlay: Overlay,
    sandbox: Sandbox,
}

impl Layered {
    /// Returns `None` if this host mounts no overlays.
    #[expect(clippy::print_stderr, reason = "the output of the tests says what is left out")]
    async fn new() -> Option<Self> {
        let area = Area::new();
        let sandbox = area.sandbox().await;
        if let Some(error) = &sandbox.protections().overlay_error {
            eprintln!("LEFT OUT: layers ({error})");
            return None;
        }
        let [lower, upper, work] = ["lower", "upper", "kernel"].map(|name| {
            let path = area.path(name);
            fs::create_dir(&path).unwrap();
            path
        });
        fs::create_dir(lower.join("below")).unwrap();
        for name in ["file", "other", "below/file"] {
            fs::write(lower.join(name), "shared").unwrap();
        }
        let directory = area.work();
        let overlay = Overlay {
            directory,
            lower,
            upper,
            work,
        };
        Some(Self { area, overlay, sandbox })
    }

    fn spec(&self, script: &str) -> CommandSpec {
        let mut spec = self.area.bash(script);
        spec.overlay = Some(self.overlay.clone());
        spec
    }

    fn lower(&self, name: &str) -> PathBuf {
        self.overlay.lower.join(name)
    }
}

#[tokio::test]
async fn no_command_changes_what_shows_through() {
    let Some(layered) = Layered::new().await else { return };
    let facts = |name: &str| {
        let found = fs::metadata(layered.lower(name)).unwrap();
        (
            found.ino(),
            found.mode(),
            found.mtime_nsec(),
            found.ctime_nsec(),
            found.nlink(),
        )
    };
    let before = ["file", "other", "below/file", "below"].map(facts);
    let script = r#"
        cat file below/file; echo
        exec 2>/dev/null
        for layer in lower upper kernel; do
            cat "$AREA/$layer/file" && echo "read $layer"
            ls "$AREA/$layer" && echo "listed $layer"
            echo x > "$AREA/$layer/file" && echo "wrote $layer"
            echo x > "$AREA/$layer/new" && echo "created in $layer"
            rm "$AREA/$layer/other" && echo "removed from $layer"
            ln "$AREA/$layer/other" linked && echo "linked from $layer"
            mv "$AREA/$layer" mine && echo "took $layer"
            chmod 777 "$AREA/$layer/file" && echo "changed the mode in $layer"
            touch "$AREA/$layer/file" && echo "changed the time in $layer"
        done
        umount . && echo unmounted
        mount -t overlay overlay -o "lowerdir=$AREA/lower" . && echo mounted
        mknod white c 0 0 && echo made a whiteout
        setfattr -n user.overlay.opaque -v y below && getfattr -n user.overlay.opaque below && echo made opaque
        echo mine > file
        chmod 755 other
        ln other hard
        rm -r below
        mkdir below
        python3 -c 'import mmap
with open("other", "r+b") as file: mmap.mmap(file.fileno(), 0)[:] = b"mapped"'
        cat file other; ls -A below"#;
    let ran = layered.area.run(&layered.sandbox, layered.spec(script)).await;
    assert_eq!(ran.stdout, "sharedshared\nmine\nmapped", "{}", ran.stderr);
    assert_eq!(["file", "other", "below/file", "below"].map(facts), before);
    for name in ["file", "other", "below/file"] {
        assert_eq!(fs::read_to_string(layered.lower(name)).unwrap(), "shared", "{name}");
    }
    // The command's own changes are in the upper layer, and nothing is in the directory itself.
    let upper = &layered.overlay.upper;
    assert_eq!(fs::read_to_string(upper.join("file")).unwrap(), "mine\n");
    assert_eq!(fs::read_to_string(upper.join("hard")).unwrap(), "mapped");
    assert_eq!(names(&layered.area.work()), Vec::<String>::new());
    // The next command sees them.
    let ran = layered
        .area
        .run(&layered.sandbox, layered.spec("cat file; rm file"))
        .await;
    assert_eq!((ran.end.exit, ran.stdout.as_str()), (Exit::Code(0), "mine\n"));
    assert!(
        fs::symlink_metadata(upper.join("file"))
            .unwrap()
            .file_type()
            .is_char_device()
    );
}

#[tokio::test]
async fn what_is_written_to_a_layer_counts() {
    let Some(layered) = Layered::new().await else { return };
    let mut spec = layered.spec("head -c 100000000 /dev/zero > file; sleep 20");
    spec.limits.disk_bytes = 20_000_000;
    let ran = layered.area.run(&layered.sandbox, spec).await;
    assert_eq!(ran.end.exit, Exit::DiskExceeded, "{}", ran.stderr);
    // What shows through does not.
    let mut spec = layered.spec("cat other");
    spec.limits.disk_bytes = 4096;
    fs::write(layered.lower("large"), vec![1; 10_000_000]).unwrap();
    let ran = layered.area.run(&layered.sandbox, spec).await;
    assert_eq!((ran.end.exit, ran.stdout.as_str()), (Exit::Code(0), "shared"));
}

#[tokio::test]
async fn layers_are_refused_where_they_can_t_be_mounted() {
    let Some(layered) = Layered::new().await else { return };
    let plain = layered.area.plain().await;
    let ran = layered.area.run(&plain, layered.spec("ls")).await;
    let Exit::Failed { message } = ran.end.exit else {
        panic!("{:?}", ran.end.exit)
    };
    assert!(message.contains("layers"), "{message}");
    let mut spec = layered.spec("ls");
    spec.overlay.as_mut().unwrap().lower = layered.area.path("missing");
    let ran = layered.area.run(&layered.sandbox, spec).await;
    let Exit::Failed { message } = ran.end.exit else {
        panic!("{:?}", ran.end.exit)
    };
    assert!(message.contains("mount the layers"), "{message}");
}
