//! The controls: what the other tests try would work without a sandbox. And the refusals to start
//! without one.

use std::fs;
use std::time::Duration;

use sandbox::{Exit, Isolation, Namespaces, Sandbox, SandboxSettings, SandboxUnavailable};

use super::harness::{Area, SECRET};

async fn without(area: &Area) -> Sandbox {
    let settings = SandboxSettings {
        isolation: Isolation::None,
        ..Area::settings()
    };
    area.probe(settings).await.unwrap()
}

#[tokio::test]
async fn without_a_sandbox_the_attempts_succeed() {
    let area = Area::new();
    let sandbox = without(&area).await;
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let _by_path = std::os::unix::net::UnixListener::bind(area.path("other/socket")).unwrap();
    let script = format!(
        r#"
import os, socket
area = os.environ["AREA"]
print(open(area + "/secret").read())
open(area + "/other/new", "w").close()
socket.create_connection(("127.0.0.1", {}))
socket.socket(socket.AF_UNIX).connect(area + "/other/socket")
os.kill(int(os.environ["SERVICE"]), 0)
os.kill(os.getppid(), 0)
os.chmod(area + "/secret", 0o600)
print("done")"#,
        server.local_addr().unwrap().port()
    );
    let ran = area.run(&sandbox, area.python(&script)).await;
    assert_eq!(ran.stdout, format!("{SECRET}\ndone\n"), "{}", ran.stderr);
    assert!(fs::exists(area.path("other/new")).unwrap());
}

#[tokio::test]
async fn without_a_sandbox_limits_and_the_end_hold() {
    let area = Area::new();
    let sandbox = without(&area).await;
    let mut spec = area.bash("setsid sleep 1000 & (trap '' TERM; sleep 1000) & sleep 1000");
    spec.limits.wall_time = Duration::from_millis(200);
    assert_eq!(area.run(&sandbox, spec).await.end.exit, Exit::TimedOut);
    let mut spec = area.python("data = bytearray(500 << 20)\nimport time\ntime.sleep(60)");
    spec.limits.memory_bytes = 100 << 20;
    assert_eq!(area.run(&sandbox, spec).await.end.exit, Exit::MemoryExceeded);
    let ran = area.run(&sandbox, area.spec("env", &[])).await;
    assert_eq!(ran.stdout.lines().count(), 7, "{}", ran.stdout);
}

#[tokio::test]
async fn the_service_refuses_to_start_with_less_than_is_required() {
    let area = Area::new();
    let refusal = async |settings: SandboxSettings| match area.probe(settings).await {
        Err(error @ SandboxUnavailable::TooWeak { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let missing = SandboxSettings {
        landlock_abi_limit: 0,
        ..Area::settings()
    };
    let said = refusal(missing.clone()).await;
    assert!(said.starts_with("the kernel offers no Landlock ("), "{said}");
    assert!(said.contains("; what holds: no landlock, seccomp, "), "{said}");
    let none = SandboxSettings {
        isolation: Isolation::None,
        ..missing
    };
    area.probe(none).await.unwrap();
    let newer = SandboxSettings {
        landlock_abi: 99,
        ..Area::settings()
    };
    assert!(
        refusal(newer)
            .await
            .starts_with("landlock abi 99 is required, the kernel has ")
    );
    let helpless = SandboxSettings {
        helper: "/bin/false".into(),
        ..Area::settings()
    };
    let error = area.probe(helpless).await.unwrap_err();
    assert_eq!(error.to_string(), "the sandbox helper does not work");
    let off = SandboxSettings {
        namespaces: Namespaces::Off,
        ..Area::settings()
    };
    let line = area.probe(off).await.unwrap().protections().to_string();
    assert!(
        line.starts_with("landlock abi ") && line.ends_with(", seccomp, no user namespace, no cgroup"),
        "{line}"
    );
}
