//! Every problem code is produced by a test: by a table of bad requests, or by the tests that
//! `ELSEWHERE` names.

use std::collections::BTreeSet;

use agent_runtime::http::ProblemCode;

use super::parameters::BAD_READS;
use super::runs::bad_runs;
use crate::support::table::rows;

/// Codes that need more than one request, and the modules whose tests produce them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("session_too_large", "sessions/sizes"),
    ("invalid_path", "sessions/files/read"),
    ("file_not_found", "sessions/files/read"),
    ("range_not_satisfiable", "sessions/files/read"),
    ("unknown_blob", "sessions/files/blobs"),
    ("hash_mismatch", "sessions/files/blobs"),
    ("workspace_too_large", "sessions/files/blobs"),
    ("storage_quota_exceeded", "../end_to_end/stored_files"),
    ("merge_conflict", "sessions/files/merge"),
    ("no_common_ancestor", "sessions/files/merge"),
    ("agent_files_invalid", "agents/reload"),
    ("malformed_request", "unparsed"),
    ("unsupported_transfer_encoding", "unparsed"),
    ("host_not_allowed", "host"),
    ("origin_not_allowed", "host"),
    ("proxied_without_key", "host"),
    ("too_many_unknown_keys", "auth"),
    ("too_many_connections", "connection"),
    ("too_much_in_flight", "in_flight"),
    ("malformed_body", "connection"),
    ("request_timeout", "connection"),
    ("missing_api_key", "auth"),
    ("invalid_api_key", "auth"),
    ("missing_scope", "auth"),
    ("invalid_token", "tokens/matrix"),
    ("token_keys_unavailable", "tokens/outages"),
    ("session_not_committed", "sessions/show"),
    ("base_session_conflict", "runs/create"),
    ("not_allowed", "../end_to_end/limits"),
    ("above_ceiling", "../end_to_end/limits"),
    ("rate_limited", "../end_to_end/tenant_quotas"),
    ("too_many_readers", "../end_to_end/tenant_quotas"),
    ("too_many_runs", "runs/create"),
    ("invalid_header", "headers"),
    ("thread_exists", "thread_details"),
    ("thread_moved", "threads"),
    ("too_many_steering_messages", "../end_to_end/steering"),
    ("answers_required", "../end_to_end/waiting/refusals"),
    ("invalid_answers", "../end_to_end/waiting/refusals"),
    ("session_not_waiting", "../end_to_end/waiting/refusals"),
    ("run_not_waiting", "../end_to_end/waiting/refusals"),
    ("thread_busy", "../end_to_end/threads"),
    ("idempotency_key_reused", "../end_to_end/idempotency"),
    ("queue_full", "runs/create"),
    ("invalid_type", "openai/requests"),
    ("unsupported_parameter", "openai/chat"),
    ("previous_response_not_found", "openai/requests"),
    ("not_ready", "problem"),
    ("run_unreachable", "../process/replicas"),
    ("session_has_descendants", "sessions/delete"),
    ("session_in_use", "sessions/delete"),
    ("shutting_down", "server"),
    ("internal_error", "problem"),
    ("spend_limit_reached", "../end_to_end/spending"),
    ("store_unavailable", "problem"),
    ("answer_timeout", "problem"),
];

#[test]
fn every_code_is_produced_by_a_test() {
    let mut produced: BTreeSet<&str> = ELSEWHERE.iter().map(|(code, _)| *code).collect();
    produced.extend(bad_runs().into_iter().map(|(code, ..)| code));
    produced.extend(rows::<3>(BAD_READS).map(|[code, ..]| code));
    produced.extend([
        "invalid_utf8",
        "unsupported_media_type",
        "uri_too_long",
        "headers_too_large",
    ]);
    produced.extend([
        "unknown_tool",
        "unknown_hook",
        "invalid_hook",
        "invalid_prompt",
        "invalid_response_format",
        "body_too_large",
    ]);
    let all: BTreeSet<&str> = ProblemCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(all.len(), ProblemCode::ALL.len(), "a code stands there twice");
    assert_eq!(produced, all);
    // A test must name what it claims to produce, and be one that runs.
    let read = |path: &str| {
        let file = format!("{}/tests/suite/http/{path}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let lines: Vec<_> = lines.map(str::trim).collect();
        format!("\n{}\n", lines.join("\n"))
    };
    for (code, module) in ELSEWHERE {
        let (folder, name) = module.rsplit_once('/').unwrap_or((".", module));
        let is_there = read(&format!("{folder}/mod.rs")).contains(&format!("\nmod {name};\n"));
        let names_it = read(&format!("{module}.rs")).contains(&format!("\"{code}\""));
        assert!(is_there && names_it, "{module} does not produce {code}");
    }
}
