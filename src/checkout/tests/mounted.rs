//! A checkout as a command sees it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::super::{Checkout, Layers};

/// Mounts the layers, says so, and unmounts them when it is asked to.
const SCRIPT: &str = r#"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3,userxattr" "$4" || exit
echo mounted
read -r _
# It is busy while a process that another test starts has not executed its program yet.
for _ in $(seq 300); do
    umount "$4" && exit
    sleep 0.1
done
exit 1
"#;

/// The directory of a checkout as a command sees it. Nothing may be scanned or updated meanwhile.
pub(super) struct Mounted {
    path: PathBuf,
    /// It is in the namespaces of the overlay, if there is one.
    holder: Option<Child>,
}

impl Mounted {
    pub(super) fn of(checkout: &Checkout) -> Self {
        let path = checkout.directory.files();
        match checkout.directory.layers() {
            None => Self { path, holder: None },
            Some(layers) => Self::mount(&layers, &path).expect("overlays work"),
        }
    }

    fn mount(layers: &Layers, at: &Path) -> Option<Self> {
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh"])
            .args([&layers.lower, &layers.upper, &layers.work])
            .arg(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(holder.stdout.take()?).read_line(&mut line).ok()?;
        let path = format!("/proc/{}/root{}", holder.id(), at.display());
        let mounted = Self {
            path: path.into(),
            holder: Some(holder),
        };
        (line == "mounted\n").then_some(mounted)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(holder) = &mut self.holder {
            let _ = holder.stdin.take().map(|mut stdin| stdin.write_all(b"\n"));
            assert!(holder.wait().unwrap().success(), "it can be unmounted");
        }
    }
}

/// Returns whether this host mounts overlays for its user.
pub(super) fn has_overlays() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let [lower, upper, work, at] = ["lower", "upper", "work", "at"].map(|name| folder.path().join(name));
    for path in [&lower, &upper, &work, &at] {
        std::fs::create_dir(path).unwrap();
    }
    let has_overlays = Mounted::mount(&Layers { lower, upper, work }, &at).is_some();
    if !has_overlays {
        eprintln!("LEFT OUT: checkouts with layers (this host mounts no overlays)");
    }
    has_overlays
}
