//! An area with a working directory and secrets beside it, and sandboxes of each tier.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sandbox::{CommandEnd, CommandSpec, Exit, Namespaces, Output, Sandbox, SandboxSettings, SandboxUnavailable};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The content of files that no command may read.
pub(crate) const SECRET: &str = "the secret of the service";
pub(crate) const PYTHON: &str = "/usr/bin/python3";

pub(crate) struct Area {
    root: TempDir,
    /// All processes of this area have it in their environment.
    mark: String,
}

pub(crate) struct Ran {
    pub(crate) end: CommandEnd,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Area {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let root = tempfile::tempdir().unwrap();
        let mark = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let area = Self { root, mark };
        for directory in [area.work(), area.scratch(), area.path("other")] {
            fs::create_dir(directory).unwrap();
        }
        for file in ["secret", "other/file"] {
            fs::write(area.path(file), SECRET).unwrap();
            fs::set_permissions(area.path(file), PermissionsExt::from_mode(0o666)).unwrap();
        }
        area
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.path("scratch")
    }

    pub(crate) fn settings() -> SandboxSettings {
        SandboxSettings {
            helper: helper(),
            ..SandboxSettings::default()
        }
    }

    /// A directory for control groups of this area, where the host has one to delegate.
    pub(crate) fn cgroup(&self) -> Option<PathBuf> {
        let delegated = PathBuf::from(std::env::var_os("AGENT_RUNTIME_TEST_CGROUP")?);
        let directory = delegated.join(&self.mark);
        fs::create_dir_all(&directory).unwrap();
        Some(directory)
    }

    pub(crate) async fn probe(&self, settings: SandboxSettings) -> Result<Sandbox, SandboxUnavailable> {
        Sandbox::probe(settings, &self.work()).await
    }

    pub(crate) fn spec(&self, program: impl Into<PathBuf>, arguments: &[&str]) -> CommandSpec {
        let mut spec = CommandSpec::new(program, self.work(), self.scratch());
        spec.arguments = arguments.iter().map(Into::into).collect();
        spec.variables.extend(BTreeMap::from([
            ("MARK".to_owned(), self.mark.clone()),
            ("AREA".to_owned(), self.root.path().to_str().unwrap().to_owned()),
            ("SERVICE".to_owned(), std::process::id().to_string()),
        ]));
        spec.limits.wall_time = Duration::from_secs(30);
        spec
    }

    pub(crate) fn bash(&self, script: &str) -> CommandSpec {
        self.spec("bash", &["-c", script])
    }

    pub(crate) fn python(&self, script: &str) -> CommandSpec {
        self.spec(PYTHON, &["-c", script])
    }

    /// Runs a command and checks that nothing of it is left.
    pub(crate) async fn run(&self, sandbox: &Sandbox, spec: CommandSpec) -> Ran {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let output = |output| match output {
            Output::Stdout(bytes) => stdout.extend(bytes),
            Output::Stderr(bytes) => stderr.extend(bytes),
        };
        let end = sandbox.run(spec, output, CancellationToken::new()).await;
        self.assert_nothing_is_left();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran {
            end,
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }

    /// Runs a script in each tier and checks what it prints. Its end must be 0.
    pub(crate) async fn prints(&self, script: CommandSpec, expected: &str) {
        for (tier, sandbox) in self.tiers().await {
            self.empty_but("");
            let ran = self.run(&sandbox, script.clone()).await;
            assert_eq!(ran.stdout.trim(), expected, "{tier}: {}", ran.stderr);
            assert_eq!(ran.end.exit, Exit::Code(0), "{tier}: {}", ran.stderr);
        }
    }

    /// Empties the directories of the command, however deep they are, but for one file.
    pub(crate) fn empty_but(&self, spared: &str) {
        let mut chmod = std::process::Command::new("chmod");
        let chmod = chmod.args(["-R", "u+rwx"]).args([self.work(), self.scratch()]);
        assert!(chmod.status().unwrap().success());
        let mut find = std::process::Command::new("find");
        let find = find
            .args([self.work(), self.scratch()])
            .args(["-mindepth", "1", "!", "-name", spared, "-delete"]);
        assert!(find.status().unwrap().success());
    }

    /// The sandboxes that this host can offer: of the kernel as it is, and of older ones. With
    /// `AGENT_RUNTIME_TEST_REQUIRE_NAMESPACES` in the environment, none may be missing.
    pub(crate) async fn tiers(&self) -> Vec<(String, Sandbox)> {
        let mut tiers = Vec::new();
        for (namespaces, abi, cgroup) in [
            (Namespaces::Off, u32::MAX, None),
            (Namespaces::Off, 1, None),
            (Namespaces::Auto, u32::MAX, None),
            (Namespaces::Off, u32::MAX, self.cgroup()),
        ] {
            let settings = SandboxSettings {
                namespaces,
                landlock_abi_limit: abi,
                cgroup,
                ..Self::settings()
            };
            let sandbox = self.probe(settings).await.unwrap();
            tiers.push((sandbox.protections().to_string(), sandbox));
        }
        tiers.dedup_by(|a, b| a.0 == b.0);
        if self.cgroup().is_some() {
            assert!(tiers.last().unwrap().0.ends_with(", cgroup"));
        }
        if std::env::var_os("AGENT_RUNTIME_TEST_REQUIRE_NAMESPACES").is_some() {
            let names: Vec<_> = tiers.iter().map(|(name, _)| name).collect();
            assert!(names.len() >= 3, "{names:?}");
            assert!(names[2].contains("user, PID and mount namespaces"), "{names:?}");
        }
        tiers
    }

    /// The sandbox that holds most.
    pub(crate) async fn sandbox(&self) -> Sandbox {
        self.probe(Self::settings()).await.unwrap()
    }

    /// The sandbox of a default container.
    pub(crate) async fn plain(&self) -> Sandbox {
        let settings = SandboxSettings {
            namespaces: Namespaces::Off,
            ..Self::settings()
        };
        self.probe(settings).await.unwrap()
    }

    pub(crate) fn assert_secrets_are_untouched(&self) {
        for file in ["secret", "other/file"] {
            assert_eq!(fs::read_to_string(self.path(file)).unwrap(), SECRET);
        }
        let mut beside = names(self.root.path());
        beside.sort();
        assert_eq!(beside, ["other", "scratch", "secret", "work"]);
        assert_eq!(names(&self.path("other")), ["file"]);
    }

    pub(crate) fn assert_nothing_is_left(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "these processes are left: {left:?}");
    }

    /// Waits until nothing is left of commands that nobody waits for.
    pub(crate) async fn wait_until_nothing_is_left(&self) {
        until("processes are left", || self.processes().is_empty()).await;
    }

    /// The number of the helper of the command that runs: the parent of the command's main process.
    pub(crate) fn helper(&self) -> u32 {
        let numbers = |field: &str| -> Vec<u32> {
            let processes = self.processes();
            let fields = processes.iter().map(|process| process.split_once(field).unwrap().1);
            let words = fields.map(|rest| rest.split_whitespace().next().unwrap());
            words.map(|word| word.parse().unwrap()).collect()
        };
        let (own, parents) = (numbers("Tgid:"), numbers("PPid:"));
        let is_helper = |number: &&u32| {
            let cmdline = fs::read_to_string(format!("/proc/{number}/cmdline")).unwrap_or_default();
            !own.contains(number) && cmdline.ends_with("sandbox-exec\0")
        };
        *parents.iter().find(is_helper).unwrap()
    }

    /// The numbers of the processes with the mark.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let processes = self.processes();
        let fields = processes.iter().filter_map(|process| process.split_once("Tgid:"));
        let words = fields.filter_map(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
        words.collect()
    }

    /// The processes with the mark, or in the area. They may be dying.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mark = format!("MARK={}\0", self.mark);
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let mut environment = Vec::new();
            if let Ok(mut file) = fs::File::open(path.join("environ")) {
                let _ = file.read_to_end(&mut environment);
            }
            let is_marked = environment.windows(mark.len()).any(|window| window == mark.as_bytes());
            let is_inside = fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(self.root.path()));
            if is_marked || is_inside {
                let status = fs::read_to_string(path.join("status")).unwrap_or_default();
                found.push(status.lines().take(7).collect::<Vec<_>>().join(" "));
            }
        }
        found
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        if let Some(directory) = self.cgroup() {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// The binary that has the helper. A user who can't enter its directory is given another path.
fn helper() -> PathBuf {
    std::env::var_os("AGENT_RUNTIME_TEST_HELPER")
        .map_or_else(|| env!("CARGO_BIN_EXE_agent-runtime").into(), PathBuf::from)
}

/// Waits for a condition. Fails after half a minute with what was missing.
pub(crate) async fn until(missing: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{missing}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}
