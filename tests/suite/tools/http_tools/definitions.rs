//! Mistakes in definitions. Each one is found before the service starts.

use serde_json::json;

use super::tools;

/// Returns the mistake in a definition with these lines.
fn mistake(lines: &str) -> String {
    tools(lines, "http://127.0.0.1:1234", None).map(drop).unwrap_err()
}

#[test]
fn a_mistake_in_the_url_is_found() {
    for (lines, expected) in [
        ("url = 'https://example.org'", "`description`: missing"),
        ("description = 'd'", "`url`: missing"),
        ("description = 'd'\nurl = '/path'", "`url`: it is no URL such as"),
        (
            "description = 'd'\nurl = 'https://{host}/'",
            "`url`: only the path, the query, headers and the body have",
        ),
        (
            "description = 'd'\nurl = 'ftp://example.org/'",
            "`url`: its scheme is neither https nor http",
        ),
        (
            "description = 'd'\nurl = 'http://127.0.0.2/'",
            "`url`: its address is not public (the operator can allow it with allow_networks)",
        ),
        (
            "description = 'd'\nurl = 'https://u:p@example.org/'",
            "`url`: it holds credentials",
        ),
        (
            "description = 'd'\nurl = 'https://example.org:25/'",
            "`url`: its port 25 is not allowed",
        ),
        (
            "description = 'd'\nurl = 'https://example.org/{'",
            "`url`: \"{\" has a brace",
        ),
        ("description = 'd'\nurl = 'https://example.org/../{a}'", "`url`: "),
        (
            "description = 'd'\nurl = 'https://example.org/?{a}=1'",
            "`url`: the names of its query have no parameters",
        ),
    ] {
        let found = mistake(lines);
        assert!(found.starts_with(expected), "{lines}: {found}");
    }
}

#[test]
fn mistakes_name_their_key() {
    let base = "name = 't'\ndescription = 'd'\nurl = 'SERVER/{id}'\n";
    for (lines, expected) in [
        ("method = 'TRACE'", "unknown variant `TRACE`"),
        ("colour = 1", "unknown field `colour`"),
        ("timeout = '1h'", "a duration from 10ms to 10m"),
        ("max_retries = 99", "an integer from 0 to 10"),
        ("max_response_bytes = 1", "an integer from 1024"),
        ("response = 'data'", "`response`: \"data\" is no JSON pointer"),
        ("[body]\na = 1", "`body`: a request with the method GET has no body"),
        ("prefix = 'x'", "`prefix`: only a definition with `openapi` has it"),
        ("openapi = 'x.json'", "`description`: the OpenAPI document has it"),
        (
            "[headers]\nHost = 'x'",
            "`headers.Host`: the service sets this header itself",
        ),
        ("[headers]\n'a b' = 'x'", "`headers.a b`: is not the name of a header"),
        (
            "[headers]\nAuthorization = 'Bearer x'",
            "`headers.Authorization`: a header with credentials: name a secret",
        ),
        (
            "[headers]\nX-Api-Key = 'x'",
            "`headers.X-Api-Key`: a header with credentials",
        ),
        (
            "[headers]\nx = { secret = 'none' }",
            "`headers.x`: no secret is named \"none\"",
        ),
        (
            "[headers]\nx = { secret = 'unset' }",
            "`headers.x`: the secret \"unset\" is not set",
        ),
        (
            "[headers]\nx = { secret = 'broken' }",
            "`headers.x`: the secret can't be sent in a header",
        ),
        ("[headers]\nx = { secrets = 'main' }", "a text, or a table such as"),
        ("[headers]\nx = '{'", "`headers.x`: \"{\" has a brace"),
        (
            "[query]\nx = { secret = 'none' }",
            "`query.x`: no secret is named \"none\"",
        ),
        (
            "method = 'POST'\nidempotency_header = 'host'",
            "`idempotency_header`: is not the name of a header",
        ),
        (
            "[parameters]\ntype = 'object'",
            "`parameters`: the schema has no property \"id\"",
        ),
        (
            "[parameters]\ntype = 'object'\nproperties.id.type = 'string'",
            "`parameters`: \"id\" is part of the path, so it must be required",
        ),
    ] {
        let found = mistake(&format!("{base}{lines}"));
        assert!(found.contains(expected), "{lines}: {found}");
        assert!(!found.contains("lines of it"), "{found}");
    }
}

#[test]
fn a_tool_is_idempotent_if_it_only_reads_or_if_its_definition_has_it() {
    for (lines, expected) in [
        ("", true),
        ("method = 'HEAD'", true),
        ("method = 'POST'", false),
        ("method = 'PUT'", false),
        ("method = 'DELETE'", false),
        ("method = 'PUT'\nidempotent = true", true),
        ("idempotent = false", false),
    ] {
        let definition = format!("name = 't'\ndescription = 'd'\nurl = 'SERVER/'\n{lines}");
        let tools = tools(&definition, "http://127.0.0.1:1234", None).unwrap();
        assert_eq!(tools[0].spec().idempotent, expected, "{lines}");
        assert_eq!(tools[0].spec().timeout, Some(std::time::Duration::from_secs(31)));
        assert_eq!(tools[0].spec().parameters["properties"], json!({}));
    }
}
