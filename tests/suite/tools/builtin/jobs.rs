//! Background jobs: what they print, what becomes of their files, and how they end.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use test_support::logs::CapturedLog;
use tracing::Level;
use values::session::EnvironmentState;
use workspace::WorkspaceLimits;

use super::Desk;
use super::shell::{Host, Shown, until};
use crate::support::text::assert_contains;

impl Desk {
    /// Starts a job, and returns what the call returned after a second at most.
    async fn job(&self, command: &str) -> Result<String, String> {
        self.call("shell", json!({"command": command, "background": true}))
            .await
    }

    /// Runs a job to its end, and returns what its calls returned.
    async fn job_to_end(&self, id: &str, command: &str) -> String {
        let mut text = self.job(command).await.unwrap();
        if !text.contains("has ended") {
            text.push_str(&self.act(id, "wait").await.unwrap());
        }
        text
    }

    async fn act(&self, id: &str, action: &str) -> Result<String, String> {
        self.call("shell_job", json!({"id": id, "action": action, "timeout_seconds": 60}))
            .await
    }

    /// Reads from a job until what it has printed contains a text.
    async fn printed(&self, id: &str, text: &str) {
        let mut all = String::new();
        for _ in 0..3_000 {
            all.push_str(&self.act(id, "read").await.unwrap());
            if all.contains(text) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{text:?} is not in {all:?}");
    }
}

/// The argument of `sleep` by which a test finds its processes.
fn seconds(number: u32) -> String {
    format!("{}.{}", 2000 + number, std::process::id())
}

/// Counts the processes of `sleep` with the argument.
fn sleepers(seconds: &str) -> usize {
    let arguments = format!("sleep\0{seconds}\0");
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line == arguments.as_bytes()).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_read_awaited_and_stopped_with_all_of_its_processes() {
    let host = Host::new();
    let desk = host.desk();
    let seconds = seconds(1);
    let command = format!(
        "echo begun; echo 1 > file; setsid sleep {seconds} & (trap '' TERM; sleep {seconds}) & sleep {seconds}"
    );
    let text = desk.job(&command).await.unwrap();
    assert_contains!(text, "[job-1 has been running for ", " s]");
    if !text.contains("begun\n[") {
        desk.printed("job-1", "begun\n[").await;
    }
    until(|| sleepers(&seconds) == 3).await;
    assert_contains!(
        desk.act("job-1", "read").await.unwrap(),
        "(no new output)\n[job-1 has been running for "
    );
    assert_eq!(desk.file("file").await.unwrap(), "1\n");
    let text = desk.act("job-1", "stop").await.unwrap();
    assert_contains!(text, "(no new output)\n[job-1 has ended after ", " s: stopped]");
    until(|| sleepers(&seconds) == 0).await;

    let late = "until [ -e go ]; do sleep 0.02; done; sleep 0.5; echo late; exit 3";
    let text = desk.job(late).await.unwrap();
    assert_contains!(text, "[job-2 has been running");
    desk.call("write_file", json!({"path": "go", "content": ""}))
        .await
        .unwrap();
    let text = desk.act("job-2", "wait").await.unwrap();
    assert_contains!(text, "late\n[job-2 has ended after ", " s: exit code 3]");
    assert_contains!(
        desk.act("job-2", "read").await.unwrap(),
        "(no new output)\n[job-2 has ended"
    );
    let short = json!({"id": "job-3", "action": "wait", "timeout_seconds": 1});
    desk.job("sleep 60").await.unwrap();
    let text = desk.call("shell_job", short).await.unwrap();
    assert_contains!(text, "[job-3 has been running for ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ends_at_once_is_reported_at_once() {
    let host = Host::new();
    let desk = host.desk();
    let mut number = 1;
    let text = loop {
        let text = desk.job("echo > made; no-such-program").await.unwrap();
        // A busy machine needs several attempts.
        if !text.contains("has been running") || number == 10 {
            break text;
        }
        desk.act(&format!("job-{number}"), "wait").await.unwrap();
        number += 1;
    };
    let ended = format!("[job-{number} has ended after ");
    assert_contains!(text, "no-such-program", &ended, ": exit code 127]");
    assert_eq!(desk.file("made").await.unwrap(), "\n");
    // A longer wait is asked for with a time.
    let asked = json!({"command": "sleep 1.5; echo done", "background": true, "timeout_seconds": 30});
    let text = desk.call("shell", asked).await.unwrap();
    let ended = format!("done\n[job-{} has ended after ", number + 1);
    assert_contains!(text, &ended, ": exit code 0]");
    // Without background, the time kills the command.
    let asked = json!({"command": "sleep 60", "timeout_seconds": 1});
    assert_contains!(
        desk.call("shell", asked).await.unwrap(),
        "[killed after ",
        " s, since its time was spent]"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_commands_and_file_tools_work_on_the_same_files() {
    let host = Host::new();
    let desk = host.desk();
    desk.sh("mkdir sub; cd sub; export GREETING=hello").await;
    // A job begins where the last command ended, and changes nothing of that.
    let job = "echo $GREETING > greeting; cd ..; export GREETING=other; \
               for i in $(seq 1000); do until [ -s ask$i ]; do sleep 0.02; done; sleep 0.02; cat ask$i > answer$i; echo answered $i; done";
    desk.job(job).await.unwrap();
    assert_eq!(
        desk.sh("until [ -s greeting ]; do sleep 0.02; done; cat greeting; basename $PWD; echo $GREETING")
            .await,
        "hello\nsub\nhello\n"
    );
    // What a file tool writes reaches the job at once, and its answer reaches the file tools.
    let write = |path: &str, content: &str| json!({"path": path, "content": content});
    desk.call("write_file", write("ask1", "one")).await.unwrap();
    desk.printed("job-1", "answered 1\n").await;
    let read = desk.call("read_file", json!({"path": "answer1"})).await.unwrap();
    assert_contains!(read, "one");
    // A command and a job see each other.
    assert_eq!(
        desk.sh("cd ..; echo two > ask2; until [ -s answer2 ]; do sleep 0.02; done; cat answer2")
            .await,
        "two\n"
    );
    // A change of a file that the job has written is based on what the job has written.
    desk.call("write_file", write("ask3", "three")).await.unwrap();
    let has_answered = |path: &PathBuf| fs::read(path.join("workspace/answer3")).is_ok_and(|text| text == b"three");
    until(|| host.directories().iter().any(has_answered)).await;
    let edit = json!({"path": "answer3", "edits": [{"old": "three", "new": "3"}]});
    desk.call("edit_file", edit).await.unwrap();
    assert_eq!(desk.sh("cat answer3").await, "3");
    let found = desk.call("glob", json!({"pattern": "answer*"})).await.unwrap();
    assert_contains!(found, "answer1", "answer2", "answer3");
    desk.call(
        "apply_patch",
        json!({"patch": "*** Begin Patch\n*** Delete File: answer1\n*** End Patch"}),
    )
    .await
    .unwrap();
    assert_eq!(desk.sh("ls | grep -c answer").await, "2\n");
}

/// The times of a file do not change with a page that stays mapped.
#[tokio::test(flavor = "multi_thread")]
async fn what_jobs_have_written_by_the_end_of_the_run_is_in_the_session() {
    let host = Host::new();
    let desk = host.desk();
    let seconds = seconds(2);
    desk.put("mapped", b"....").await;
    let script = format!(
        "import mmap, os, time
file = open('mapped', 'r+b')
page = mmap.mmap(file.fileno(), 4)
page[0:1] = b'A'
open('own', 'wb').write(b'....')
own = open('own', 'r+b')
own_page = mmap.mmap(own.fileno(), 4)
own_page[0:1] = b'A'
print('first', flush=True)
while not os.path.exists('go'): time.sleep(0.01)
time.sleep(0.1)
own_page[1:2] = b'B'
for number in range(300): open(f'f{{number % 7}}', 'w').write(str(number).zfill(3))
print('second', flush=True)
os.execvp('sleep', ['sleep', '{seconds}'])"
    );
    desk.put("job.py", script.as_bytes()).await;
    if !desk.job("python3 job.py").await.unwrap().contains("first") {
        desk.printed("job-1", "first").await;
    }
    assert_eq!(desk.file("own").await.unwrap(), "A...");
    desk.call("write_file", json!({"path": "go", "content": ""}))
        .await
        .unwrap();
    until(|| sleepers(&seconds) == 1).await;
    let state = desk.environment.export().await.unwrap();
    until(|| sleepers(&seconds) == 0).await;
    let next = Desk {
        agent_id: desk.agent_id,
        environment: Arc::new(desk.environment.again(state)),
        ..host.desk()
    };
    assert_eq!(next.file("own").await.unwrap(), "AB..");
    assert_eq!(next.file("f6").await.unwrap(), "293");
    // The next run has the directory, without the job.
    assert_eq!(next.sh("cat own f5").await, "AB..299");
    let error = next.act("job-1", "read").await.unwrap_err();
    assert_contains!(error, "job-1 and its output are gone", "Start it again");
    assert_contains!(next.job_to_end("job-2", "true").await, "[job-2 has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_have_limits_of_their_own_and_of_their_number() {
    let host = Host::with(|settings| {
        settings.limits.memory_bytes = 64 << 20;
        settings.limits.output_bytes = 100_000;
    });
    let desk = host.desk();
    for (number, (command, end)) in [
        ("yes", "killed, since it wrote more output than a command may"),
        (
            "x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 50",
            "killed, since it used more memory than a command may",
        ),
        ("kill -9 $$", "a signal ended it: 9"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("job-{}", number + 1);
        let first = desk.job(command).await.unwrap();
        let then = desk.act(&id, "wait").await.unwrap();
        assert_contains!(format!("{first}{then}"), &id, end);
    }
    // A run has two, and its subagents share them.
    let subagent = Desk {
        environment: Arc::new(desk.environment.fork()),
        ..host.desk()
    };
    desk.job("sleep 60").await.unwrap();
    subagent.job("sleep 60").await.unwrap();
    for desk in [&desk, &subagent] {
        let error = desk.job("true").await.unwrap_err();
        assert_contains!(error, "there are 2 background jobs in this run already", "stop one");
    }
    // A tenant has half of the four of the process.
    let other = host.desk();
    let error = other.job("true").await.unwrap_err();
    assert_contains!(error, "too many background jobs run in this service");
    desk.act("job-4", "stop").await.unwrap();
    assert_contains!(other.job_to_end("job-1", "true").await, "[job-1 has ended");
    let none = Host::with(|settings| settings.max_jobs.of_run = 0);
    let error = none.desk().job("true").await.unwrap_err();
    assert_contains!(
        error,
        "this service has no background jobs, since its configuration allows none"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_name_no_job_list_what_there_is() {
    let host = Host::new();
    let desk = host.desk();
    let error = desk.act("job-1", "read").await.unwrap_err();
    assert_contains!(
        error,
        "there is no job \"job-1\", nor any other",
        "`background` of `shell`"
    );
    desk.job(&format!("sleep 60; # {}", "ü".repeat(100))).await.unwrap();
    desk.job_to_end("job-2", "true").await;
    for id in ["job-3", "job-0", "job--1", "1", "job-99999999999999999999"] {
        let error = desk.act(id, "stop").await.unwrap_err();
        assert_contains!(
            error,
            "the jobs are job-1 (running: sleep 60; # üü",
            "…), job-2 (ended: true)"
        );
    }
    for arguments in [
        json!({}),
        json!({"id": ""}),
        json!({"id": "job-1", "action": "kill"}),
        json!({"id": "job-1", "timeout_seconds": 0}),
        json!({"id": "x".repeat(33)}),
    ] {
        let error = desk.call("shell_job", arguments).await.unwrap_err();
        assert_contains!(error, "do not fit the schema");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_a_job_is_shown_while_a_call_waits_and_stored_if_it_is_long() {
    let host = Host::new();
    let shown = Arc::new(Shown::default());
    let desk = Desk {
        output: Some(Arc::clone(&shown) as _),
        ..host.desk()
    };
    desk.job("printf 'gr\\303'; until [ -e go ]; do sleep 0.02; done; printf '\\274n\\n'; seq 30000")
        .await
        .unwrap();
    desk.call("write_file", json!({"path": "go", "content": ""}))
        .await
        .unwrap();
    let text = desk.act("job-1", "wait").await.unwrap();
    let file = ".agent/output/shell_job-0123456789abcdef.txt";
    assert_contains!(text, "ün\n1\n2\n", file, "30000\n[job-1 has ended");
    let shown = shown.text();
    assert!(
        shown.starts_with("grün\n1\n") && shown.ends_with("30000\n"),
        "{} bytes",
        shown.len()
    );
    assert_eq!(desk.sh(&format!("head -3 {file} | tail -1")).await, "2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_reads_how_much_unread_output_was_lost() {
    let host = Host::with(|settings| settings.limits.output_bytes = 32 << 20);
    let desk = host.desk();
    let seconds = seconds(8);
    // 24 MiB at once, of which the last 16 stay.
    let command = format!(
        "until [ -e go ]; do sleep 0.02; done; head -c 25165823 /dev/zero | tr '\\0' x; echo; exec sleep {seconds}"
    );
    desk.job(&command).await.unwrap();
    desk.put("go", b"now").await;
    until(|| sleepers(&seconds) == 1).await;
    let text = desk.act("job-1", "read").await.unwrap();
    let (lost, _) = text.split_once(" bytes before this are lost, since").unwrap();
    let lost: usize = lost.trim_start_matches('[').parse().unwrap();
    // The pipes may still have some of the last.
    assert!((4 << 20..=8 << 20).contains(&lost), "{lost}");
    let text = desk.act("job-1", "stop").await.unwrap();
    assert!(!text.contains("are lost"), "{text}");
    assert_contains!(text, "[job-1 has ended after ", ": stopped]");
}

/// A desk whose sessions have up to 50 files.
fn desk_of_few_files(host: &Host) -> Desk {
    let limits = WorkspaceLimits {
        files: 50,
        ..WorkspaceLimits::default()
    };
    host.desk_with(limits, EnvironmentState::default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_can_not_be_read_is_given_up_with_its_jobs() {
    let host = Host::new();
    let desk = desk_of_few_files(&host);
    let seconds = seconds(3);
    desk.put("a", b"1").await;
    let command =
        format!("until [ -e go ]; do sleep 0.02; done; for i in $(seq 100); do echo > f$i; done; sleep {seconds}");
    desk.job(&command).await.unwrap();
    desk.call("write_file", json!({"path": "go", "content": ""}))
        .await
        .unwrap();
    until(|| sleepers(&seconds) == 1).await;
    let error = desk.call("read_file", json!({"path": "a"})).await.unwrap_err();
    assert_contains!(error, "so the jobs are killed: ", "50");
    until(|| sleepers(&seconds) == 0).await;
    // The files are as they were, and the run goes on.
    assert_eq!(desk.sh("ls").await, "a\ngo\n");
    assert_contains!(
        desk.act("job-1", "read").await.unwrap(),
        "[job-1 has ended after ",
        ": stopped]"
    );
}

/// The call that reads the output is the first one that finds the files.
#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_a_job_whose_files_can_not_be_read_is_not_lost() {
    let host = Host::new();
    let desk = desk_of_few_files(&host);
    for (number, print, last) in [(0, "echo flooded", "flooded"), (1, "seq 30000", "30000")] {
        let (id, seconds) = (format!("job-{}", number + 1), seconds(8 + number));
        desk.job(&format!(
            "until [ -e go{number} ]; do sleep 0.02; done; {print}; for i in $(seq 100); do echo > f$i; done; sleep {seconds}"
        ))
        .await
        .unwrap();
        desk.put(&format!("go{number}"), b"").await;
        until(|| sleepers(&seconds) == 1).await;
        let error = desk.act(&id, "read").await.unwrap_err();
        let end = format!("{last}\n[{id} has ended after ");
        assert!(error.starts_with("the files of background jobs can't be read or written, so the jobs are killed: "));
        assert_contains!(error, "more than 50 files and directories\n", &end, ": stopped]");
        assert_eq!(error.contains(".agent/output/shell_job-"), number == 1);
        until(|| sleepers(&seconds) == 0).await;
        assert_contains!(
            desk.act(&id, "read").await.unwrap(),
            &format!("(no new output)\n[{id} has ended after "),
            ": stopped]"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_end_with_their_run_however_it_ends() {
    let host = Host::new();
    // It is cancelled or stopped.
    let (desk, first) = (host.desk(), seconds(4));
    desk.job(&format!("setsid sleep {first} & wait")).await.unwrap();
    until(|| sleepers(&first) == 1).await;
    desk.cancellation.cancel();
    until(|| sleepers(&first) == 0).await;
    drop(desk);
    // Its environment is dropped, as with a lost lease or a panic.
    let (desk, second) = (host.desk(), seconds(5));
    desk.job(&format!("setsid sleep {second} & while true; do date > now; done"))
        .await
        .unwrap();
    until(|| sleepers(&second) == 1).await;
    drop(desk);
    until(|| sleepers(&second) == 0).await;
    host.commands.close().await;
    until(|| host.directories().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_says_if_jobs_have_left_more_than_a_session_may_have() {
    let host = Host::new();
    let desk = desk_of_few_files(&host);
    let seconds = seconds(7);
    let flood =
        format!("until [ -e go ]; do sleep 0.1; done; for i in $(seq 100); do echo > f$i; done; exec sleep {seconds}");
    desk.job(&flood).await.unwrap();
    desk.put("go", b"now").await;
    until(|| sleepers(&seconds) == 1).await;
    let (log, listening) = CapturedLog::listening(Level::WARN);
    let state = desk.environment.export().await.unwrap();
    drop(listening);
    assert_contains!(
        log.text(),
        "is not part of the session",
        "the workspace has more than 50 files"
    );
    until(|| sleepers(&seconds) == 0).await;
    let next = Desk {
        agent_id: desk.agent_id,
        environment: Arc::new(desk.environment.again(state)),
        ..host.desk()
    };
    assert_eq!(next.sh("ls").await, "go\n");
}
