//! Real work across tools, runs, restarts and replicas: what programs rely on that compare times of
//! files, follow links or store paths.

mod packages;

use std::sync::Arc;

use sandbox::Namespaces;
use serde_json::json;
use values::clock::SystemClock;
use values::session::EnvironmentState;
use workspace::environment::Environment;

use super::Desk;
use super::shell::Host;
use crate::support::text::assert_contains;

const MAKEFILE: &[u8] = b"prog: main.o util.o\n\tcc -o prog main.o util.o\n\
                          %.o: %.c util.h\n\tcc -c $<\n\
                          out: src\n\tcp src out\n";

/// A session, and where its next run is.
struct Line {
    desk: Desk,
    state: EnvironmentState,
}

impl Line {
    fn new(host: &Host) -> Self {
        let mut desk = host.desk();
        let environment = desk.environment.again(EnvironmentState::default());
        desk.environment = Arc::new(environment.with_clock(Some(Arc::new(SystemClock))));
        Self {
            desk,
            state: EnvironmentState::default(),
        }
    }

    async fn sh(&self, command: &str) -> String {
        self.desk.sh(command).await
    }

    async fn write(&self, path: &str, content: &str) {
        let arguments = json!({"path": path, "content": content});
        self.desk.call("write_file", arguments).await.unwrap();
    }

    /// Ends the run, and begins the next one on a host.
    async fn next_on(&mut self, host: &Host) {
        self.state = self.desk.environment.export().await.unwrap();
        self.desk = Desk {
            agent_id: self.desk.agent_id,
            environment: Arc::new(self.desk.environment.again(self.state.clone())),
            ..host.desk()
        };
    }
}

/// Hosts that retain directories, and that do not.
fn hosts() -> [Host; 2] {
    [4, 0].map(|retained| Host::with(|settings| settings.retained_directories = retained))
}

#[tokio::test(flavor = "multi_thread")]
async fn make_builds_what_was_edited_and_nothing_else() {
    let [one, other] = hosts();
    // On the same host, on another one, and back.
    for places in [[&one, &one], [&one, &other], [&other, &other], [&other, &one]] {
        let mut line = Line::new(places[0]);
        line.write("Makefile", std::str::from_utf8(MAKEFILE).unwrap()).await;
        line.write("src", "one\n").await;
        line.write("util.h", "int util(void);\n").await;
        line.write("util.c", "#include \"util.h\"\nint util(void) { return 1; }\n")
            .await;
        line.write(
            "main.c",
            "#include <stdio.h>\n#include \"util.h\"\nint main(void) { printf(\"%d\\n\", util()); }\n",
        )
        .await;
        assert_contains!(
            line.sh("make out prog && ./prog").await,
            "cc -c main.c",
            "cc -c util.c",
            "1\n"
        );
        let up_to_date = "make: 'out' is up to date.\nmake: 'prog' is up to date.\n";
        assert_eq!(line.sh("make out prog").await, up_to_date);
        line.next_on(places[1]).await;
        assert_eq!(line.sh("make out prog").await, up_to_date);
        // An edit by a tool, before a command and after a restart.
        line.write("src", "two\n").await;
        line.next_on(places[0]).await;
        assert_eq!(line.sh("make out && cat out").await, "cp src out\ntwo\n");
        let edits = json!([{"old": "return 1", "new": "return 2"}]);
        let edited = line
            .desk
            .call("edit_file", json!({"path": "util.c", "edits": edits}))
            .await;
        assert_contains!(edited.unwrap(), "1 replacement");
        line.next_on(places[1]).await;
        let built = line.sh("make prog && ./prog").await;
        assert_eq!(built, "cc -c util.c\ncc -o prog main.o util.o\n2\n");
        // An edit by a command, and a build that makes the same output again.
        line.sh("sed -i 's/return 2/return 2 /' util.c").await;
        line.next_on(places[0]).await;
        assert_contains!(line.sh("make prog && ./prog").await, "cc -c util.c\n", "2\n");
        line.sh("echo changed > other").await;
        line.next_on(places[1]).await;
        assert_eq!(line.sh("make prog").await, "make: 'prog' is up to date.\n");
    }
}

/// A file with the same content has not changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_alone_is_no_change_of_a_session() {
    let [one, other] = hosts();
    let mut line = Line::new(&one);
    line.sh("echo 1 > a; echo 2 > b; touch -d '2020-01-02 03:04:05.678' a")
        .await;
    let time = "stat -c %.9Y a";
    let expected = line.sh(time).await;
    assert!(expected.contains(".678"), "{expected}");
    line.next_on(&one).await;
    let before = line.state.clone();
    for host in [&one, &other, &one] {
        assert_eq!(line.sh(time).await, expected);
        // It lasts as long as the run, for the commands of the run.
        let touched = line.sh(&format!("touch a; cat a > c; cp c a; rm c; {time}")).await;
        assert_ne!(touched, expected);
        assert_eq!(line.sh(time).await, touched);
        line.write("b", "2\n").await;
        line.next_on(host).await;
        assert_eq!(line.state.workspace, before.workspace);
    }
}

/// The changes of a subagent are new for its parent, in their order.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_subagent_has_changed_is_built_again() {
    let [host, _] = hosts();
    let line = Line::new(&host);
    line.write("Makefile", "out: src\n\tcp src out\n").await;
    line.write("src", "one\n").await;
    line.sh("make").await;
    let base = line.desk.environment.tree();
    let fork = |environment: &Environment| Desk {
        environment: Arc::new(environment.fork()),
        ..host.desk()
    };
    let subagent = fork(&line.desk.environment);
    subagent
        .call("write_file", json!({"path": "src", "content": "two\n"}))
        .await
        .unwrap();
    // The parent builds meanwhile.
    line.sh("rm out; make; echo > mine").await;
    line.desk
        .environment
        .merge_fork(&subagent.environment, &base)
        .await
        .unwrap();
    assert_eq!(line.sh("make && cat out").await, "cp src out\ntwo\n");
    let base = line.desk.environment.tree();
    let subagent = fork(&line.desk.environment);
    subagent.sh("echo three > src; make; sleep 0.1; echo four > src").await;
    line.sh("echo again > mine").await;
    line.desk
        .environment
        .merge_fork(&subagent.environment, &base)
        .await
        .unwrap();
    assert_eq!(line.sh("make && cat out").await, "cp src out\nfour\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn git_and_python_work_on_across_runs_and_hosts() {
    let on = Host::new();
    let off = Host::with(|settings| settings.sandbox.namespaces = Namespaces::Off);
    let mut line = Line::new(&on);
    let begin = "git init -q . && git config user.email a@b.c && git config user.name a && echo one > a && \
                 mkdir -p pkg tests bin && echo 'def f(): return 1' > pkg/__init__.py && \
                 git add . && git commit -qm one && git tag first";
    assert_eq!(line.sh(begin).await, "(no output)");
    line.write(
        "tests/test_f.py",
        "import unittest, pkg\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(pkg.f(), 2)\n",
    )
    .await;
    line.write("bin/tool", "#!/bin/sh\nexec python3 -c 'import pkg; print(pkg.f())'\n")
        .await;
    line.sh(
        "chmod +x bin/tool; export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD PATH=$PWD/bin:$PATH; ln -s $PWD/pkg link",
    )
    .await;
    for host in [&off, &on, &off] {
        line.next_on(host).await;
        assert_eq!(
            line.sh("git status --short; tool; ls link/").await,
            "?? bin/\n?? link\n?? tests/\n1\n__init__.py\n"
        );
        let failed = line
            .sh("cd tests; python3 -B -m unittest -q 2>&1 | grep File; cd ..")
            .await;
        // The path of the traceback is one for the file tools.
        let path = failed.split('"').nth(1).unwrap();
        let read = line.desk.call("read_file", json!({"path": path})).await.unwrap();
        assert_contains!(read, "class T");
    }
    let edits = json!([{"old": "return 1", "new": "return 2"}]);
    let edited = line
        .desk
        .call("edit_file", json!({"path": "pkg/__init__.py", "edits": edits}))
        .await;
    assert_contains!(edited.unwrap(), "1 replacement");
    line.next_on(&on).await;
    assert_contains!(
        line.sh("python3 -B -m unittest -q tests/test_f.py 2>&1; git diff --stat")
            .await,
        "OK",
        "1 file changed"
    );
    line.next_on(&off).await;
    assert_eq!(
        line.sh("git checkout -q pkg && tool; git log --format=%s").await,
        "1\none\n"
    );
}
