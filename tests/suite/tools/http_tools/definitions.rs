//! Mistakes in definitions. Each one is found before the service starts.

use serde_json::json;

use super::tools;
use crate::support::table::rows;

/// Returns the mistake in a definition with these lines.
fn mistake(lines: &str) -> String {
    tools(lines, "http://127.0.0.1:1234", None).map(drop).unwrap_err()
}

/// How a mistake begins, and a definition that has it. A semicolon ends a line.
const BAD_URLS: &str = r#"
`description`: missing                                           | url = 'https://example.org'
`url`: missing                                                   | description = 'd'
`url`: it is no URL such as                                      | description = 'd'; url = '/path'
`url`: only the path, the query, headers and the body have       | description = 'd'; url = 'https://{host}/'
`url`: its scheme is neither https nor http                      | description = 'd'; url = 'ftp://example.org/'
`url`: its address is not public (the operator can allow it with allow_networks) | description = 'd'; url = 'http://127.0.0.2/'
`url`: it holds credentials                                      | description = 'd'; url = 'https://u:p@example.org/'
`url`: its port 25 is not allowed                                | description = 'd'; url = 'https://example.org:25/'
`url`: "{" has a brace                                           | description = 'd'; url = 'https://example.org/{'
`url`:                                                           | description = 'd'; url = 'https://example.org/../{a}'
`url`: the names of its query have no parameters                 | description = 'd'; url = 'https://example.org/?{a}=1'
"#;

#[test]
fn a_mistake_in_the_url_is_found() {
    for [expected, lines] in rows(BAD_URLS) {
        let found = mistake(&lines.replace("; ", "\n"));
        assert!(found.starts_with(expected), "{lines}: {found}");
    }
}

/// Words of a mistake, and lines that a definition has besides the base.
const BAD_KEYS: &str = r#"
unknown variant `TRACE`                                          | method = 'TRACE'
unknown field `colour`                                           | colour = 1
a duration from 10ms to 10m                                      | timeout = '1h'
an integer from 0 to 10                                          | max_retries = 99
an integer from 1024                                             | max_response_bytes = 1
`response`: "data" is no JSON pointer                            | response = 'data'
`body`: a request with the method GET has no body                | body.a = 1
`prefix`: only a definition with `openapi` has it                | prefix = 'x'
`description`: the OpenAPI document has it                       | openapi = 'x.json'
`headers.Host`: the service sets this header itself              | headers.Host = 'x'
`headers.a b`: is not the name of a header                       | headers.'a b' = 'x'
`headers.Authorization`: a header with credentials: name a secret | headers.Authorization = 'Bearer x'
`headers.X-Api-Key`: a header with credentials                   | headers.X-Api-Key = 'x'
`headers.x`: no secret is named "none"                           | headers.x = { secret = 'none' }
`headers.x`: the secret "unset" is not set                       | headers.x = { secret = 'unset' }
`headers.x`: the secret can't be sent in a header                | headers.x = { secret = 'broken' }
a text, or a table such as                                       | headers.x = { secrets = 'main' }
`headers.x`: "{" has a brace                                     | headers.x = '{'
`query.x`: no secret is named "none"                             | query.x = { secret = 'none' }
`idempotency_header`: is not the name of a header                | method = 'POST'; idempotency_header = 'host'
`parameters`: the schema has no property "id"                    | parameters.type = 'object'
`parameters`: "id" is part of the path, so it must be required   | parameters = { type = 'object', properties.id.type = 'string' }
"#;

#[test]
fn mistakes_name_their_key() {
    let base = "name = 't'\ndescription = 'd'\nurl = 'SERVER/{id}'\n";
    for [expected, lines] in rows(BAD_KEYS) {
        let found = mistake(&format!("{base}{}", lines.replace("; ", "\n")));
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
