//! The kinds of servers: behind TLS, behind Sentinels, in a cluster. Each carries the whole board
//! and comes back after a loss.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use board::{Board, ControlMessage, LiveRun, RedisSettings};
use tasks::supervision::Supervisor;
use values::tenant::TenantId;

use crate::board::server::{PrivateServer, board, settings, skip};
use crate::board::{
    append, boards, close, listed, lookup, new_run, new_session_id, new_tenant, open, until, with_step,
};
use crate::support::ports::free_port;

/// Short, so that runs are refreshed often, and longer than a test machine stands still.
const EXPIRY: Duration = Duration::from_secs(12);

/// Shows that what one replica does reaches the other: runs, rivals, events, control messages.
async fn check_sharing(here: &Board, there: &Board) {
    let (tenant, base) = (new_tenant(), new_session_id());
    let run = new_run(Some(base));
    open(here, &tenant, &run, true).await.unwrap();
    until_seen(there, &tenant, &run).await;
    let rival = new_run(Some(base));
    assert_eq!(open(there, &tenant, &rival, true).await, Err(run.summary.run_id));
    let run = with_step(&run, "one");
    here.run_update(&tenant, Arc::clone(&run));
    append(here, &tenant, &run, 1..=3, "a");
    until_seen(there, &tenant, &run).await;
    until_read(there, &tenant, &run, "1a 2a 3a").await;
    until(true, async || {
        there
            .control_send(&tenant, run.summary.run_id, ControlMessage::Refresh)
            .await
    })
    .await;
    here.run_close(&tenant, run.summary.run_id);
    until(vec![], async || listed(there, &tenant).await).await;
    // Its events are left.
    assert_eq!(there.tenant_remove(&tenant).await.unwrap(), 1);
}

async fn until_seen(board: &Board, tenant: &TenantId, run: &Arc<LiveRun>) {
    until(Some(Arc::clone(run)), async || lookup(board, tenant, run).await).await;
}

async fn until_read(board: &Board, tenant: &TenantId, run: &LiveRun, wanted: &str) {
    until(wanted.to_owned(), async || {
        let events = board.event_read(tenant, run.summary.run_id, 0, 100).await;
        events.map(|events| crate::board::show(&events)).unwrap_or_default()
    })
    .await;
}

mod tls {
    use super::*;

    /// Makes an authority and a certificate of it for 127.0.0.1.
    fn make_certificates(folder: &Path) -> Option<()> {
        std::fs::write(folder.join("san"), "subjectAltName=IP:127.0.0.1").unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        for arguments in [
            format!(
                "req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority -addext keyUsage=critical,keyCertSign"
            ),
            format!("req {key} -keyout server.key -out server.csr -subj /CN=server"),
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile san"
                .into(),
        ] {
            let mut command = Command::new("openssl");
            match command.current_dir(folder).args(arguments.split(' ')).output() {
                Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return skip("openssl is not on the PATH");
                }
                Err(error) => panic!("openssl does not start: {error}"),
            }
        }
        Some(())
    }

    /// Starts a server that speaks TLS on a further port, and returns that port.
    pub(super) fn start(folder: &Path) -> Option<(PrivateServer, u16)> {
        make_certificates(folder)?;
        let tls_port = free_port();
        let file = |name: &str| folder.join(name).display().to_string();
        let arguments = [
            ("--tls-port", tls_port.to_string()),
            ("--tls-cert-file", file("server.pem")),
            ("--tls-key-file", file("server.key")),
            ("--tls-ca-cert-file", file("ca.pem")),
            ("--tls-auth-clients", "no".to_owned()),
        ];
        let arguments = arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        let server = PrivateServer::start_with(|_, _| arguments.collect())?;
        Some((server, tls_port))
    }

    fn trusting(folder: &Path) -> RedisSettings {
        RedisSettings {
            ca: Some(std::fs::read(folder.join("ca.pem")).unwrap()),
            ..settings(EXPIRY)
        }
    }

    #[tokio::test]
    async fn a_private_authority_is_trusted_when_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let Some((_server, port)) = start(folder.path()) else {
            return;
        };
        let url = format!("rediss://127.0.0.1:{port}/");
        let here = Board::open(&url, trusting(folder.path()), &Supervisor::default())
            .await
            .unwrap();
        let there = Board::open(&url, trusting(folder.path()), &Supervisor::default())
            .await
            .unwrap();
        check_sharing(&here, &there).await;
        close([&here, &there]).await;
    }

    #[tokio::test]
    async fn a_server_of_another_authority_is_not_used() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let Some((server, port)) = start(folder.path()) else {
            return;
        };
        make_certificates(other.path()).unwrap();
        let url = format!("rediss://127.0.0.1:{port}/");
        for settings in [trusting(other.path()), settings(EXPIRY)] {
            let here = Board::open(&url, settings, &Supervisor::default()).await.unwrap();
            let (tenant, run) = (new_tenant(), new_run(None));
            open(&here, &tenant, &run, true).await.unwrap();
            append(&here, &tenant, &run, 1..=1, "a");
            assert!(
                here.event_read(&tenant, new_run(None).summary.run_id, 0, 1)
                    .await
                    .is_err()
            );
            here.close().await;
        }
        assert_eq!(server.command(&["DBSIZE"]), ":0");
    }

    #[tokio::test]
    async fn an_authority_without_tls_or_that_is_none_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        if make_certificates(folder.path()).is_none() {
            return;
        }
        for url in [
            "redis://127.0.0.1:1/",
            "redis+sentinel://127.0.0.1:1/main",
            "redis+cluster://127.0.0.1:1",
        ] {
            let error = Board::open(url, trusting(folder.path()), &Supervisor::default())
                .await
                .unwrap_err();
            assert_eq!(
                error.to_string(),
                "the board is unavailable: prepare its connections",
                "{url}"
            );
        }
        let nonsense = RedisSettings {
            ca: Some(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec()),
            ..settings(EXPIRY)
        };
        assert!(
            Board::open("rediss://127.0.0.1:1/", nonsense, &Supervisor::default())
                .await
                .is_err()
        );
    }
}

mod sentinel {
    use super::*;

    fn start_replica(master: &PrivateServer) -> Option<PrivateServer> {
        let address = format!("127.0.0.1 {}", master.port());
        PrivateServer::start_with(|_, _| ["--replicaof", &address].map(str::to_owned).to_vec())
    }

    /// A server, its replica, and a Sentinel that knows both.
    async fn start() -> Option<(PrivateServer, PrivateServer, PrivateServer)> {
        let fast = |_: u16, _: &Path| ["--repl-diskless-sync-delay", "0"].map(str::to_owned).to_vec();
        let master = PrivateServer::start_with(fast)?;
        let replica = start_replica(&master)?;
        until(true, async || {
            replica.text(&["INFO", "replication"]).contains("master_link_status:up")
        })
        .await;
        let lines = format!(
            "sentinel monitor main 127.0.0.1 {} 1\nsentinel down-after-milliseconds main 500\n\
             sentinel failover-timeout main 3000\n",
            master.port()
        );
        let sentinel = PrivateServer::start_sentinel(&lines);
        until("*1".to_owned(), async || {
            sentinel.command(&["SENTINEL", "REPLICAS", "main"])
        })
        .await;
        Some((master, replica, sentinel))
    }

    fn has_role(server: &PrivateServer, role: &str) -> bool {
        server.text(&["INFO", "replication"]).contains(&format!("role:{role}"))
    }

    #[tokio::test]
    async fn a_failover_is_followed() {
        let Some((mut master, replica, sentinel)) = start().await else {
            return;
        };
        // One of the Sentinels may be away.
        let url = format!("redis+sentinel://127.0.0.1:{},{}/main", free_port(), sentinel.address());
        let [here, there] = boards(&url, EXPIRY).await;
        check_sharing(&here, &there).await;
        let (tenant, run) = (new_tenant(), new_run(None));
        open(&here, &tenant, &run, true).await.unwrap();
        append(&here, &tenant, &run, 1..=2, "a");
        until_read(&there, &tenant, &run, "1a 2a").await;

        master.stop();
        append(&here, &tenant, &run, 3..=3, "b");
        until_seen(&there, &tenant, &run).await;
        until_read(&there, &tenant, &run, "1a 2a 3b").await;
        assert!(has_role(&replica, "master"));
        check_sharing(&here, &there).await;
        close([&here, &there]).await;
    }

    #[tokio::test]
    async fn a_failover_without_a_loss_is_followed_by_a_process_that_only_reads() {
        let Some((master, replica, sentinel)) = start().await else {
            return;
        };
        let url = format!("redis+sentinel://{}/main", sentinel.address());
        let here = board(&url, EXPIRY).await;
        assert_eq!(open(&here, &new_tenant(), &new_run(None), false).await, Ok(()));
        until(true, async || {
            // A Sentinel that is busy gives up a failover, so it is asked for again. While one is
            // under way, it refuses another.
            if has_role(&replica, "slave") {
                sentinel.command(&["SENTINEL", "FAILOVER", "main"]);
            }
            has_role(&replica, "master") && has_role(&master, "slave")
        })
        .await;
        // What is told to a replica is received there alone.
        let there = board(&replica.url(), EXPIRY).await;
        let (tenant, run) = (new_tenant(), new_run(None));
        open(&there, &tenant, &run, false).await.unwrap();
        until(true, async || {
            here.control_send(&tenant, run.summary.run_id, ControlMessage::Refresh)
                .await
        })
        .await;
        check_sharing(&here, &there).await;
        close([&here, &there]).await;
    }

    #[tokio::test]
    async fn sentinels_that_know_no_such_master_are_an_outage() {
        let sentinel = match PrivateServer::start() {
            Some(_) => PrivateServer::start_sentinel(""),
            None => return,
        };
        let here = board(&format!("redis+sentinel://{}/main", sentinel.address()), EXPIRY).await;
        let (tenant, run) = (new_tenant(), new_run(None));
        open(&here, &tenant, &run, true).await.unwrap();
        assert_eq!(listed(&here, &tenant).await, [run.summary.run_id]);
        assert!(
            here.event_read(&tenant, new_run(None).summary.run_id, 0, 1)
                .await
                .is_err()
        );
        here.close().await;
    }
}

mod cluster {
    use super::*;

    const NODES: usize = 3;

    async fn start() -> Option<Vec<PrivateServer>> {
        let nodes: Vec<_> = (0..NODES).map(|_| start_node()).collect::<Option<_>>()?;
        for (index, (node, _)) in nodes.iter().enumerate() {
            let (first, last) = (index * 16384 / NODES, (index + 1) * 16384 / NODES - 1);
            let given = node.command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            assert_eq!(given, "+OK");
            let (first, bus) = &nodes[0];
            let met = node.command(&[
                "CLUSTER",
                "MEET",
                "127.0.0.1",
                &first.port().to_string(),
                &bus.to_string(),
            ]);
            assert_eq!(met, "+OK");
        }
        for (node, _) in &nodes {
            until_whole(node).await;
        }
        Some(nodes.into_iter().map(|(node, _)| node).collect())
    }

    fn start_node() -> Option<(PrivateServer, u16)> {
        let bus = free_port();
        let bus_port = bus.to_string();
        let arguments = [
            ["--cluster-enabled", "yes"],
            ["--cluster-node-timeout", "15000"],
            ["--cluster-port", &bus_port],
        ];
        let arguments = arguments.concat().into_iter().map(str::to_owned).collect();
        Some((PrivateServer::start_with(|_, _| arguments)?, bus))
    }

    async fn until_whole(node: &PrivateServer) {
        until(true, async || {
            let info = node.text(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains(&format!("cluster_known_nodes:{NODES}"))
        })
        .await;
    }

    fn url(nodes: &[PrivateServer]) -> String {
        let addresses: Vec<_> = nodes.iter().map(PrivateServer::address).collect();
        format!("redis+cluster://{}", addresses.join(","))
    }

    #[tokio::test]
    async fn each_tenant_has_its_slot_and_all_runs_are_visible() {
        let Some(nodes) = start().await else { return };
        // Any one node leads to the others.
        let (here, there) = (
            board(&url(&nodes), EXPIRY).await,
            board(&url(&nodes[2..]), EXPIRY).await,
        );
        for _ in 0..8 {
            check_sharing(&here, &there).await;
        }
        let tenants: Vec<_> = (0..40)
            .map(|_| (new_tenant(), new_run(Some(new_session_id()))))
            .collect();
        let opened = tenants.iter().map(|(tenant, run)| open(&here, tenant, run, true));
        futures_util::future::join_all(opened).await;
        for (tenant, run) in &tenants {
            append(&here, tenant, run, 1..=2, "a");
        }
        for (tenant, run) in &tenants {
            until_seen(&there, tenant, run).await;
            until_read(&there, tenant, run, "1a 2a").await;
        }
        let used = nodes.iter().filter(|node| node.command(&["DBSIZE"]) != ":0").count();
        assert_eq!(used, NODES);
        close([&here, &there]).await;
    }

    #[tokio::test]
    async fn a_node_that_is_lost_and_comes_back_is_filled_again() {
        let Some(mut nodes) = start().await else { return };
        let [here, there] = boards(&url(&nodes), EXPIRY).await;
        let tenants: Vec<_> = (0..20).map(|_| (new_tenant(), new_run(None))).collect();
        for (tenant, run) in &tenants {
            open(&here, tenant, run, false).await.unwrap();
            append(&here, tenant, run, 1..=1, "a");
        }
        nodes[1].stop();
        for (tenant, run) in &tenants {
            append(&here, tenant, run, 2..=2, "b");
        }
        nodes[1].restart();
        for node in &nodes {
            until_whole(node).await;
        }
        for (tenant, run) in &tenants {
            until_seen(&there, tenant, run).await;
            until_read(&there, tenant, run, "1a 2b").await;
        }
        check_sharing(&here, &there).await;
        close([&here, &there]).await;
    }
}
