//! Bad paths and queries, and the problems that they deserve.

use super::refused::assert_refused;
use super::routes::Route;
use super::service::{NOWHERE, Service};
use crate::support::table::rows;

on_every_store! {
    bad_requests_without_a_body_are_refused,
    ids_and_names_of_parameters_are_checked_first,
}

async fn bad_requests_without_a_body_are_refused(service: &Service) {
    for [code, pointer, request] in rows(BAD_READS) {
        let (method, path) = request.split_once(' ').unwrap();
        let sent = service.request(method.parse().unwrap(), &path.replace("ID", NOWHERE));
        assert_refused(sent, code, pointer, request).await;
    }
}

/// The problems of a body come before these.
async fn ids_and_names_of_parameters_are_checked_first(service: &Service) {
    for route in Route::all().iter().filter(|route| !route.has_body()) {
        let shown = format!("{} {}", route.method, route.path());
        let unknown = service.request(route.method.clone(), &format!("{}?now=1", route.path()));
        assert_refused(unknown, "unknown_parameter", "now", &shown).await;
        for id in route.ids() {
            let malformed = service.request(route.method.clone(), &route.path_with(id, "x"));
            assert_refused(malformed, "malformed_id", id, &shown).await;
        }
    }
}

/// The code and the pointer of a problem, and a request without a body that has it. `ID` stands for
/// an id that nothing has.
pub(super) const BAD_READS: &str = r#"
route_not_found        |                  | GET /v1
route_not_found        |                  | GET /v1/runs/
route_not_found        |                  | POST /v2/runs
route_not_found        |                  | GET /docs/nothing.js
route_not_found        |                  | GET /docs/problems/nothing
method_not_allowed     |                  | DELETE /v1/runs
method_not_allowed     |                  | PATCH /v1/sessions
method_not_allowed     |                  | POST /v1/agents/demo
method_not_allowed     |                  | POST /healthz
method_not_allowed     |                  | GET /v1/runs/ID/stop
method_not_allowed     |                  | POST /v1/runs/ID/events
method_not_allowed     |                  | POST /v1/webhooks/deliveries
malformed_id           | run_id           | GET /v1/runs/42
malformed_id           | run_id           | GET /v1/runs/0197f3c21b1e7c3a9d543f1f0a6f8c11
malformed_id           | run_id           | GET /v1/runs/%00
malformed_id           | run_id           | GET /v1/runs/%2F
malformed_id           | run_id           | GET /v1/webhooks/deliveries?run_id=x
invalid_utf8           |                  | GET /v1/runs/%ff
invalid_utf8           |                  | GET /docs/%ff
invalid_parameter      | thread           | GET /v1/runs?thread=a%20b
malformed_id           | base_session_id  | GET /v1/runs?base_session_id=x
run_not_found          |                  | GET /v1/runs/ID
run_not_found          |                  | GET /v1/runs/ID/steps
run_not_found          |                  | GET /v1/runs/ID/events
run_not_found          |                  | POST /v1/runs/ID/stop
run_not_found          |                  | POST /v1/runs/ID/cancel
run_not_found          |                  | GET /v1/runs/ID?wait=60s
session_not_found      |                  | GET /v1/sessions/ID
session_not_found      |                  | GET /v1/sessions/ID/messages
session_not_found      |                  | GET /v1/sessions/ID/messages?before=9
session_not_found      |                  | GET /v1/sessions/ID/messages/0/session
session_not_found      |                  | GET /v1/sessions/ID/lineage
session_not_found      |                  | GET /v1/sessions/ID/children
session_not_found      |                  | GET /v1/sessions/ID/verify
session_not_found      |                  | GET /v1/sessions/ID/diff/ID
unsupported_media_type |                  | POST /v1/runs/ID/steer
invalid_parameter      | wait             | GET /v1/runs/ID?wait=soon
invalid_parameter      | wait             | GET /v1/runs/ID?wait=
invalid_parameter      | wait             | GET /v1/runs/ID?wait=61
invalid_parameter      | wait             | GET /v1/runs/ID?wait=%2B1
invalid_parameter      | wait             | GET /v1/runs/ID?wait=-1s
invalid_parameter      | wait             | GET /v1/runs/ID?wait=1h
invalid_parameter      | wait             | GET /v1/runs/ID?wait=1.5
invalid_parameter      | wait             | GET /v1/runs/ID?wait=99999999999999999999
invalid_parameter      | wait             | GET /v1/runs/ID?wait=1s&wait=2s
invalid_parameter      | after            | GET /v1/runs/ID/events?after=-1
invalid_parameter      | after            | GET /v1/runs/ID/events?after=x
invalid_parameter      | after            | GET /v1/runs/ID/events?after=9223372036854775808
invalid_parameter      | after            | GET /v1/runs/ID/events?after=18446744073709551616
thread_not_found       |                  | GET /v1/threads/nobody
thread_not_found       |                  | GET /v1/threads/a%00b
thread_not_found       |                  | GET /v1/threads/a%20b
thread_not_found       |                  | DELETE /v1/threads/nobody
thread_not_found       |                  | GET /v1/threads/a%2Fb
invalid_cursor         | cursor           | GET /v1/threads?cursor=a64656d6f
invalid_cursor         | cursor           | GET /v1/threads?cursor=t20
invalid_cursor         | cursor           | GET /v1/sessions/ID/messages?cursor=m0000000100000000
invalid_cursor         | cursor           | GET /v1/runs?cursor=2
invalid_cursor         | cursor           | GET /v1/runs?cursor=s0197f3c21b1e7c3a9d543f1f0a6f8c11
invalid_cursor         | cursor           | GET /v1/agents?cursor=zz
invalid_cursor         | cursor           | GET /v1/webhooks/deliveries?cursor=r0197f3c21b1e7c3a9d543f1f0a6f8c11
invalid_parameter      | limit            | GET /v1/threads?limit=0
invalid_parameter      | limit            | GET /v1/runs?limit=0
invalid_parameter      | limit            | GET /v1/runs?limit=%2B5
invalid_parameter      | limit            | GET /v1/runs?limit=5.0
invalid_parameter      | limit            | GET /v1/runs?limit=201
invalid_parameter      | limit            | GET /v1/runs?limit=ten
invalid_parameter      | limit            | GET /v1/runs?limit=99999999999999999999
invalid_parameter      | limit            | GET /v1/runs?limit=1&limit=2
agent_not_found        |                  | GET /v1/agents/nobody
agent_not_found        |                  | GET /v1/agents/a%00b
agent_not_found        |                  | DELETE /v1/agents/nobody
agent_not_found        |                  | GET /v1/agents/a%2Fb
agent_is_configured    |                  | DELETE /v1/agents/demo
unknown_parameter      | limits           | GET /v1/sessions?limits=3
invalid_utf8           | �                | GET /v1/agents/demo?%ff
invalid_utf8           | agent            | GET /v1/runs?agent=%ff
invalid_utf8           | agent            | GET /v1/runs?agent=%ED%A0%80
invalid_utf8           | metadata.a�      | GET /v1/sessions?metadata.a%c3=1
invalid_parameter      | pretty           | GET /v1/runs?pretty=maybe
invalid_parameter      | pretty           | GET /v1/runs?pretty&pretty
invalid_parameter      | created_from     | GET /v1/runs?created_from=-0001-01-01T00:00:00Z
invalid_parameter      | created_from     | GET /v1/sessions?created_from=%2B10000-01-01T00:00:00Z
invalid_parameter      | created_from     | GET /v1/runs?created_from=yesterday
invalid_parameter      | created_until    | GET /v1/runs?created_until=9999-12-31T23:59:59-01:00
invalid_parameter      | metadata         | GET /v1/sessions?metadata={"a":1,"a":2}
invalid_parameter      | metadata         | GET /v1/sessions?metadata={"a":18446744073709551616}
invalid_parameter      | metadata         | GET /v1/sessions?metadata=[1]
invalid_parameter      | metadata         | GET /v1/sessions?metadata={"a":"\u0000"}
invalid_parameter      | metadata.a       | GET /v1/sessions?metadata={"a":"1"}&metadata.a=2
invalid_parameter      | metadata.user.id | GET /v1/sessions?metadata.user.id=7
invalid_parameter      | from             | GET /v1/sessions/ID/messages?cursor=m0000000000000001&from=1
invalid_parameter      | from             | GET /v1/sessions/ID/messages?from=4294967296
invalid_parameter      | before           | GET /v1/sessions/ID/messages?before=-1
invalid_parameter      | before           | GET /v1/sessions/ID/messages?before=1&from=0
invalid_parameter      | before           | GET /v1/sessions/ID/messages?before=1&cursor=m0000000000000001
invalid_parameter      | before           | GET /v1/threads/nobody/messages?before=1&from=0
invalid_parameter      | index            | GET /v1/sessions/ID/messages/last/session
invalid_parameter      | index            | GET /v1/sessions/ID/messages/-1/session
invalid_parameter      | index            | GET /v1/sessions/ID/messages/4294967296/session
invalid_parameter      | from             | GET /v1/runs/ID/steps?cursor=n0000000000000001&from=1
invalid_parameter      | from             | GET /v1/runs/ID/steps?from=4294967296
invalid_parameter      | status           | GET /v1/runs?status=happy
invalid_parameter      | status           | GET /v1/runs?status=queued,happy
invalid_parameter      | status           | GET /v1/runs?status=queued,
invalid_parameter      | status           | GET /v1/runs?status=queued&status=running
invalid_parameter      | kind             | GET /v1/approvals?kind=input
invalid_parameter      | thread           | GET /v1/approvals?thread=a%20b
nul_character          | agent            | GET /v1/approvals?agent=%00
invalid_cursor         | cursor           | GET /v1/approvals?cursor=s0197f3c21b1e7c3a9d543f1f0a6f8c11
invalid_parameter      | status           | GET /v1/webhooks/deliveries?status=lost
invalid_parameter      | tips             | GET /v1/sessions?tips=maybe
invalid_parameter      | roots            | GET /v1/sessions?roots=maybe
invalid_parameter      | roots            | GET /v1/sessions?roots=true&tips=true
invalid_parameter      | roots            | GET /v1/sessions?roots=true&metadata.a=1
malformed_id           | root             | GET /v1/sessions?root=1
nul_character          | metadata.        | GET /v1/sessions?metadata.a=%00
nul_character          | agent            | GET /v1/sessions?agent=%00
invalid_parameter      | include          | GET /v1/sessions/ID?include=files
delivery_not_found     |                  | GET /v1/webhooks/deliveries/ID
"#;
