//! `shell`: what commands do to the files, what they leave for the next command, and how they end.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::ports::OutputSink;
use parking_lot::Mutex;
use sandbox::{SandboxLimits, SandboxSettings};
use serde_json::json;
use tempfile::TempDir;
use test_support::clock::TestClock;
use test_support::wait;
use tools::{CallLimits, CommandSettings, Commands, MaxJobs, builtin_tools, shell, shell_job};
use values::clock::Clock;
use values::path_patterns::PathPatterns;
use values::session::{EnvironmentState, ShellState};
use workspace::WorkspaceLimits;

use super::{Desk, parsed};
use crate::support::text::assert_contains;

/// The directories of commands, and what runs them.
pub(super) struct Host {
    directory: TempDir,
    pub(super) commands: Arc<Commands>,
}

impl Host {
    pub(super) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(super) fn with(change: impl FnOnce(&mut CommandSettings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = CommandSettings {
            sandbox: SandboxSettings {
                helper: env!("CARGO_BIN_EXE_agent-runtime").into(),
                ..SandboxSettings::default()
            },
            limits: SandboxLimits::default(),
            directory: directory.path().join("commands"),
            retained_directories: 4,
            ephemeral: PathPatterns::new(["target/"]).unwrap(),
            read_only: Vec::new(),
            is_required: false,
            network: None,
            max_commands: 64,
            max_jobs: MaxJobs {
                of_run: 2,
                of_process: 4,
            },
        };
        change(&mut settings);
        Self {
            directory,
            commands: Commands::new(settings),
        }
    }

    /// A new process with the same configuration.
    pub(super) fn restarted(self) -> Self {
        let settings = self.commands.settings().clone();
        drop(self.commands);
        Self {
            directory: self.directory,
            commands: Commands::new(settings),
        }
    }

    pub(super) fn desk(&self) -> Desk {
        self.desk_with(WorkspaceLimits::default(), EnvironmentState::default())
    }

    pub(super) fn desk_with(&self, limits: WorkspaceLimits, state: EnvironmentState) -> Desk {
        let clock: Arc<dyn Clock> = Arc::new(TestClock::new());
        let mut tools = builtin_tools(&clock);
        tools.push(shell(self.commands.settings(), Arc::clone(&self.commands) as _, clock));
        tools.push(shell_job(self.commands.settings()));
        Desk::of(tools, limits, CallLimits::default(), state)
    }

    /// Returns whether a command has written the file `begun`.
    pub(super) fn has_begun(&self) -> bool {
        self.directories()
            .iter()
            .any(|path| path.join("workspace/begun").exists())
    }

    /// The directories of runs.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.directory.path().join("commands"));
        let mut folders = folders.into_iter().flatten().map(|folder| folder.unwrap().path());
        let Some(folder) = folders.find(|folder| folder.is_dir()) else {
            return Vec::new();
        };
        let entries = fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    }
}

impl Desk {
    pub(super) async fn sh(&self, command: &str) -> String {
        self.call("shell", json!({"command": command})).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_file_tools_work_on_the_same_files() {
    let host = Host::new();
    let desk = host.desk();
    desk.put("src/a.txt", b"one\n").await;
    desk.put("gone", b"x").await;
    desk.put("run.sh", b"echo ran; exit 3\n").await;
    let text = desk
        .sh("cat src/a.txt; echo two >> src/a.txt; rm gone; chmod +x run.sh; mkdir -p new/empty; ln -s ../src/a.txt new/link; ./run.sh")
        .await;
    assert_eq!(text, "one\nran\n[exit code 3]");
    assert_eq!(desk.file("src/a.txt").await.unwrap(), "one\ntwo\n");
    assert_eq!(desk.file("new/link").await.unwrap(), "one\ntwo\n");
    assert_eq!(desk.paths().await, ["new/link", "run.sh", "src/a.txt"]);
    assert!(desk.is_executable("run.sh").await && !desk.is_executable("src/a.txt").await);
    assert!(
        desk.environment
            .tree()
            .entry(&parsed("new/empty"))
            .await
            .unwrap()
            .is_some()
    );

    desk.call("write_file", json!({"path": "src/b.txt", "content": "three\n"}))
        .await
        .unwrap();
    desk.call("write_file", json!({"path": "src/a.txt", "content": "four\n"}))
        .await
        .unwrap();
    assert_eq!(desk.sh("cat src/*.txt; ls").await, "four\nthree\nnew\nrun.sh\nsrc\n");
    let revision = desk.environment.revision();
    assert_eq!(desk.sh("true").await, "(no output)");
    assert_eq!(desk.environment.revision(), revision, "nothing has changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_working_directory_and_exported_variables_last() {
    let host = Host::new();
    let desk = host.desk();
    desk.sh("mkdir -p a/b && cd a/b && export GREETING='hello  there' OTHER=1; LOCAL=2; false")
        .await;
    let expected = ShellState {
        cwd: "a/b".to_owned(),
        variables: [("GREETING", "hello  there"), ("OTHER", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..ShellState::default()
    };
    assert_eq!(desk.environment.shell(), Some(expected.clone()));
    let text = desk
        .sh("basename $PWD; echo \"$GREETING/$LOCAL\"; unset OTHER; exit 0")
        .await;
    assert_eq!(text, "b\nhello  there/\n");

    // The next run of the session continues there; one whose directory is gone begins at the top.
    let state = desk.environment.export().await.unwrap();
    let shell = state.shell.clone().unwrap();
    assert_eq!(shell.variables.keys().collect::<Vec<_>>(), ["GREETING"]);
    let moved = ShellState {
        cwd: "../../..".to_owned(),
        ..shell
    };
    for (state, ending) in [
        (Some(expected), "workspace"),
        (Some(moved), "workspace"),
        (None, "workspace"),
    ] {
        let state = EnvironmentState {
            shell: state,
            ..EnvironmentState::default()
        };
        let other = host.desk_with(WorkspaceLimits::default(), state);
        assert_eq!(other.sh("basename $PWD").await, format!("{ending}\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_exceeds_a_limit_is_killed_and_its_files_stay() {
    let host = Host::with(|settings| {
        settings.limits.memory_bytes = 64 << 20;
        settings.limits.output_bytes = 100_000;
        settings.limits.processes = 16;
        settings.limits.disk_bytes = 20 << 20;
    });
    let desk = host.desk();
    for (number, (command, note)) in [
        ("sleep 60", " s, since its time was spent]"),
        ("kill -9 $$", "[a signal ended it: 9]"),
        ("yes", "[killed, since it wrote more output than a command may]"),
        (
            "x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 50",
            "[killed, since it used more memory than a command may]",
        ),
        (
            "for i in $(seq 40); do sleep 50 & done; wait",
            "[killed, since it had more processes than a command may]",
        ),
        (
            "while head -c 1000000 /dev/zero >> $TMPDIR/big; do :; done",
            "[killed, since the files of this run took up more of the disk than they may; the temporary ones and what is not part of the session may be gone]",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let command = format!("echo {number} > made-{number}; {command}");
        // The first one needs some time to write its file.
        let seconds = if number == 0 { 10 } else { 60 };
        let text = desk
            .call("shell", json!({"command": command, "timeout_seconds": seconds}))
            .await
            .unwrap();
        let shown = &text[text.len().saturating_sub(200)..];
        assert!(shown.ends_with(note), "{command}: {shown}");
        assert_eq!(
            desk.file(&format!("made-{number}")).await.unwrap(),
            format!("{number}\n")
        );
    }
    // Apart, since the others take processor time, too.
    let host = Host::with(|settings| settings.limits.cpu_time = Duration::from_millis(300));
    let text = host.desk().sh("while :; do :; done").await;
    assert_eq!(text, "[killed, since it used more processor time than a command may]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_command_dies_with_all_its_processes_and_its_files_stay() {
    let host = Host::new();
    let desk = host.desk();
    let cancel = desk.cancellation.clone();
    let cancelling = async {
        until(|| host.has_begun()).await;
        cancel.cancel();
        Instant::now()
    };
    let command = json!({"command": "setsid sleep 61 & echo x > x; mv x begun; sleep 61", "timeout_seconds": 60});
    let (ended, cancelled_at) = tokio::join!(desk.call("shell", command), cancelling);
    assert_eq!(
        ended.unwrap_err(),
        "the run was cancelled or stopped, and the command with it"
    );
    assert!(cancelled_at.elapsed() < Duration::from_secs(20));
    assert_eq!(desk.file("begun").await.unwrap(), "x\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_changes_nothing_and_its_directory_is_removed() {
    let host = Host::new();
    let desk = host.desk();
    desk.put("a", b"1").await;
    let call = desk.call("shell", json!({"command": "echo 2 > a; echo > begun; sleep 61"}));
    tokio::select! {
        _ = call => panic!("it should still run"),
        () = until(|| host.has_begun()) => (),
    }
    assert_eq!(desk.file("a").await.unwrap(), "1");
    assert_eq!(desk.sh("cat a").await, "1");
    until(|| host.directories().len() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_no_part_of_the_session_is_named_or_ephemeral() {
    let host = Host::new();
    let desk = host.desk();
    let text = desk
        .sh("mkdir target && echo built > target/x && mkfifo pipe && ln -s /etc/passwd out && echo kept > kept")
        .await;
    assert_contains!(
        text,
        "[not part of the session: ",
        "pipe (it is neither a file",
        "out (",
        "target (ephemeral: what is new there lasts until the end of this run)"
    );
    assert_eq!(desk.paths().await, ["kept"]);
    assert_eq!(desk.sh("cat target/x; rm pipe out").await, "built\n");
    // A directory that is part of the session already stays part of it.
    let other = host.desk();
    other.put("target/y", b"1\n").await;
    other
        .sh("echo 2 > target/y; mkdir -p sub/target; echo > sub/target/z")
        .await;
    assert_eq!(other.paths().await, ["target/y"]);
    assert_eq!(other.file("target/y").await.unwrap(), "2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_files_that_the_session_can_not_have_are_counted() {
    let host = Host::new();
    let pipes = "for i in $(seq 130); do mkfifo p$i; done";
    let (desk, other) = (host.desk(), host.desk());
    let mut of_job = other
        .call(
            "shell",
            json!({"command": pipes, "background": true, "timeout_seconds": 60}),
        )
        .await
        .unwrap();
    if !of_job.contains("has ended") {
        of_job = other
            .call("shell_job", json!({"id": "job-1", "action": "wait"}))
            .await
            .unwrap();
    }
    for text in [desk.sh(pipes).await, of_job] {
        assert_contains!(text, "[not part of the session: p", " and 120 more]");
        assert_eq!(text.matches("it is neither a file").count(), 10, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_files_are_named_and_wait_in_the_directory() {
    let host = Host::new();
    let limits = WorkspaceLimits {
        files: 50,
        file_bytes: 1_000,
        ..WorkspaceLimits::default()
    };
    let desk = host.desk_with(limits, EnvironmentState::default());
    desk.put("a", b"1").await;
    let command = json!({"command": "echo begun; for i in $(seq 100); do echo > f$i; done"});
    let text = desk.call("shell", command).await.unwrap();
    let said = "begun\n[not part of the session: all changes since the last command (the workspace has more than 50 \
                files and directories; remove files";
    assert_contains!(text, said);
    assert_eq!(desk.paths().await, ["a"]);
    // Nothing is lost if the model removes what is too much.
    let text = desk.sh("rm f?? f100; head -c 2000 /dev/zero > big; echo 2 > a").await;
    assert_contains!(text, "[not part of the session: big (");
    assert_eq!(
        desk.paths().await,
        ["a", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9"]
    );
    assert_eq!(desk.file("a").await.unwrap(), "2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_output_is_in_a_file_that_the_next_command_can_read() {
    let host = Host::new();
    let desk = host.desk();
    let text = desk.sh("seq 30000").await;
    let file = ".agent/output/shell-0123456789abcdef.txt";
    assert_contains!(text, "1\n2\n", file, "30000\n");
    assert_eq!(desk.sh(&format!("tail -1 {file}")).await, "30000\n");
}

#[derive(Debug, Default)]
pub(super) struct Shown(Mutex<String>);

impl Shown {
    pub(super) fn text(&self) -> String {
        self.0.lock().clone()
    }
}

impl OutputSink for Shown {
    fn show(&self, call_id: &str, text: String) {
        assert_eq!(call_id, "c");
        self.0.lock().push_str(&text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_shown_while_the_command_runs() {
    let host = Host::new();
    let shown = Arc::new(Shown::default());
    let desk = Desk {
        output: Some(Arc::clone(&shown) as _),
        ..host.desk()
    };
    let command = "echo first; echo problem >&2; until [ -e seen ]; do sleep 0.02; done; printf 'grün\\377'";
    // The command does not end before its output has been shown.
    let seeing = async {
        until(|| shown.text() == "first\nproblem\n").await;
        fs::write(host.directories()[0].join("workspace/seen"), "").unwrap();
    };
    let (text, ()) = tokio::join!(desk.sh(command), seeing);
    assert_eq!(text, "first\nproblem\ngrün\u{fffd}");
    assert_eq!(shown.text(), text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_serves_the_next_run_of_its_session_and_no_other() {
    let host = Host::new();
    let first = host.desk();
    first.put("a", b"1").await;
    let inode = first
        .sh("echo 2 > b; echo t > $TMPDIR/t; mkdir target; stat -c %i .")
        .await;
    let inode = format!("{}\n", inode.lines().next().unwrap());
    let path = host.directories().remove(0).join("workspace");
    // What a file tool changes after the last command is in the directory too.
    first.put("c", b"3").await;
    let state = first.environment.export().await.unwrap();
    until(|| !path.join("target").exists()).await;
    let next = |state| Desk {
        agent_id: first.agent_id,
        environment: Arc::new(first.environment.again(state)),
        ..host.desk()
    };
    let second = next(state.clone());
    let third = next(state.clone());
    let listed = "cat a b c; ls $TMPDIR; ls; stat -c %i .";
    assert_eq!(second.sh(listed).await, format!("12\n3a\nb\nc\n{inode}"));
    let other = third.sh("stat -c %i .").await;
    assert_ne!(other, inode);
    let fork = Desk {
        environment: Arc::new(second.environment.fork()),
        ..host.desk()
    };
    assert_eq!(fork.sh("echo fork > a; cat a").await, "fork\n");
    assert_eq!(second.sh("cat a").await, "1");
}

/// The disk may have been full, or the directory of another mode.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_could_not_run_commands_tries_again() {
    let host = Host::new();
    let directory = host.directory.path().join("commands");
    fs::write(&directory, "no directory").unwrap();
    let error = host.desk().call("shell", json!({"command": "true"})).await.unwrap_err();
    assert_contains!(
        error,
        "this service can't run commands: the directory of the sandbox can't be used"
    );
    fs::remove_file(&directory).unwrap();
    assert_eq!(host.desk().sh("echo now").await, "now\n");
}

/// The shell leaves its variables in a file, which the service reads and removes.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_named_like_the_shell_s_file_stays() {
    let host = Host::new();
    let desk = host.desk();
    desk.sh("cd \"$TMPDIR/..\" && mkdir shell-state && touch shell-state/one && cd - && export A=b")
        .await;
    let listed = desk.sh("ls \"$TMPDIR/../shell-state\"; echo \"[$A]\"").await;
    assert!(listed.starts_with("one\n[]\n"), "{listed}");
    desk.sh("rm -r \"$TMPDIR/../shell-state\"; export A=c").await;
    assert_eq!(desk.sh("echo \"[$A]\"").await, "[c]\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_a_sandbox_says_so() {
    let host = Host::with(|settings| settings.sandbox.helper = "/nowhere".into());
    let error = host.desk().call("shell", json!({"command": "true"})).await.unwrap_err();
    assert_contains!(
        error,
        "this service can't run commands: the sandbox helper does not work: ",
        "Do without them."
    );
    let host = Host::with(|settings| settings.sandbox.landlock_abi = 99);
    let error = host.desk().call("shell", json!({"command": "true"})).await.unwrap_err();
    assert_contains!(error, "landlock abi 99 is required");
    assert!(host.commands.is_required());
}

/// Waits for what happens in the background.
pub(super) async fn until(condition: impl Fn() -> bool) {
    wait::until("it does not happen", async || condition()).await;
}
