//! Limits of spending: what runs cost together stays within what a tenant, an agent or a key may
//! spend in a day or a month.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until;
use values::clock::Clock as _;
use values::limits::{RunLimits, SpendLimits};
use values::usage::Cost;

use super::on_every_store;
use crate::support::answer::{Answer, read, with_json};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::TestApp;
use crate::support::webhook_receiver::{Reaction, WebhookReceiver};

on_every_store!(
    at_the_limit_runs_are_refused_until_the_next_day,
    a_run_stops_before_the_step_that_it_can_t_pay_and_goes_on_later,
    a_completion_ends_where_the_money_does_and_no_earlier,
    an_agent_and_a_key_have_limits_of_their_own,
    a_light_run_pays_one_statement_more_where_a_limit_is_set,
    runs_at_once_never_pass_the_limit,
    replicas_at_midnight_count_each_run_in_one_day,
    a_clock_that_is_set_back_opens_no_second_day,
    a_refused_run_has_reserved_nothing,
    what_is_spent_is_reported_once,
    usage_is_summed_as_json_and_as_csv,
);

/// Two cents for each completion, of 10 tokens of input and 5 of output.
const PRICES: [(&str, &str); 2] = [
    ("prices.'mock/m'.input", "1000.0"),
    ("prices.'mock/m'.output", "2000.0"),
];
/// Ten tokens, as the model counts them.
const INPUT: &str = "The capital of France, in a single word?";

async fn start(database: &TestDatabase, mock: &MockModel, settings: &[(&str, &str)]) -> TestApp {
    let app = TestApp::start_bare(database.url(), mock, &[&PRICES, settings].concat()).await;
    let brief = json!({"max_output_tokens": 5});
    app.put_agent("brief", json!({"model": "mock/m", "parameters": brief}))
        .await;
    app.put_agent(
        "calc",
        json!({"model": "mock/m", "parameters": brief, "tools": ["calculator"]}),
    )
    .await;
    app
}

async fn ask(app: &TestApp) -> Answer {
    app.post("/v1/runs", &json!({"agent": "brief", "input": INPUT})).await
}

/// Returns what is spent and reserved of each limit.
async fn amounts(app: &TestApp) -> Vec<(f64, f64)> {
    let spend = app.get("/v1/spend").await;
    let amount = |limit: &Value, name: &str| limit[name].as_f64().unwrap();
    let limits = spend["limits"].as_array().unwrap().iter();
    limits
        .map(|limit| (amount(limit, "spent"), amount(limit, "reserved")))
        .collect()
}

fn refused(answer: &Answer) -> Value {
    answer.assert_problem("spend_limit_reached");
    assert_eq!(answer.status, StatusCode::PAYMENT_REQUIRED);
    answer.json()
}

async fn at_the_limit_runs_are_refused_until_the_next_day(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let limits = [
        ("limits.each_tenant.max_cost_per_day", "0.04"),
        ("limits.each_tenant.max_cost_per_month", "100.0"),
        ("limits.each_tenant.time_zone", "Europe/Berlin"),
    ];
    let app = start(&database, &mock, &limits).await;
    for _ in 0..2 {
        let result = ask(&app).await.ok();
        assert_members!(result, {"status": "completed", "usage/cost": 0.02});
    }
    assert_eq!(amounts(&app).await, [(0.04, 0.0), (0.04, 0.0)]);
    let problem = refused(&ask(&app).await);
    let resets_at: DateTime<Utc> = problem["resets_at"].as_str().unwrap().parse().unwrap();
    let berlin: chrono_tz::Tz = "Europe/Berlin".parse().unwrap();
    assert_eq!(resets_at.with_timezone(&berlin).time(), chrono::NaiveTime::MIN);
    assert!((TimeDelta::zero()..TimeDelta::hours(26)).contains(&(resets_at - app.clock.now())));
    let queued = app
        .post("/v1/runs", &json!({"agent": "brief", "input": INPUT, "mode": "async"}))
        .await;
    assert_eq!(refused(&queued)["resets_at"], problem["resets_at"]);
    assert_eq!(
        (
            mock.asked(),
            app.get("/v1/runs").await["data"].as_array().unwrap().len()
        ),
        (2, 2)
    );
    let shown = app.get("/v1/spend").await;
    assert_members!(shown, {"time_zone": "Europe/Berlin", "limits/0/scope": "tenant", "limits/0/period": "day",
        "limits/0/limit": 0.04, "limits/0/left": 0.0, "limits/0/resets_at": problem["resets_at"], "limits/1/period": "month"});

    app.clock.advance(resets_at - app.clock.now());
    assert_members!(ask(&app).await.ok(), {"status": "completed"});
    assert_eq!(amounts(&app).await[0], (0.02, 0.0));
    app.finish().await;
}

/// A model that never has enough of its calculator.
fn insatiable(request: &Value) -> Reply {
    let id = format!("c{}", request["messages"].as_array().unwrap().len());
    Reply::call(&id, "calculator", &json!({"expression": "1+1"}))
}

async fn a_run_stops_before_the_step_that_it_can_t_pay_and_goes_on_later(database: TestDatabase) {
    let mock = MockModel::start(insatiable).await;
    let app = start(&database, &mock, &[("limits.each_tenant.max_cost_per_day", "0.1")]).await;
    let mut base = Value::Null;
    for mode in ["sync", "async"] {
        let body = json!({"agent": "calc", "input": INPUT, "mode": mode, "base_session_id": base});
        let started = app.post("/v1/runs", &body).await;
        let run_id = started.json()["run_id"].as_str().unwrap().to_owned();
        let path = format!("/v1/runs/{run_id}");
        until("the run has ended", async || {
            !app.get(&path).await["completed_at"].is_null()
        })
        .await;
        let result = app.get(&path).await;
        assert_members!(result, {"status": "stopped", "stop_reason": "spend_limit_reached"});
        let signal = &result["stop_signal"];
        assert_eq!(
            (&signal["context"]["scope"], &signal["context"]["limit"]),
            (&json!("tenant"), &json!(0.1)),
            "{signal}"
        );
        assert!(signal["context"]["resets_at"].is_string(), "{signal}");
        let cost = result["usage"]["cost"].as_f64().unwrap();
        assert!((0.02..=0.1).contains(&cost), "{cost}");
        assert_eq!(amounts(&app).await, [(cost, 0.0)]);
        // The session is published, and a run of the next day continues it.
        base = result["session_id"].clone();
        assert_eq!(
            app.get(&format!("/v1/sessions/{}", base.as_str().unwrap())).await["run_id"],
            json!(run_id)
        );
        app.clock.advance(TimeDelta::days(1));
    }
    app.finish().await;
}

async fn a_completion_ends_where_the_money_does_and_no_earlier(database: TestDatabase) {
    // About 3,000 tokens of a dime each thousand.
    let pieces = vec!["Paris is the capital of France. ".to_owned(); 400];
    let text = pieces.concat();
    let mock = MockModel::start(move |_| Reply::Text(pieces.clone())).await;
    let prices = [("prices.'mock/m'.input", "1.0"), ("prices.'mock/m'.output", "100.0")];
    for (limit, status) in [("0.1", "stopped"), ("10.0", "completed")] {
        let settings = [&prices[..], &[("limits.each_tenant.max_cost_per_day", limit)]].concat();
        let app = TestApp::start(database.url(), &mock, &settings).await;
        let result = app.run_with(json!({"agent": "echo", "input": INPUT})).await;
        assert_eq!(result["status"], status, "{result:#}");
        let written = result["output_text"].as_str().unwrap();
        assert!(text.starts_with(written));
        assert_eq!(written.len() == text.len(), status == "completed");
        assert_eq!(result["stop_reason"] == "spend_limit_reached", status == "stopped");
        app.finish().await;
    }
}

async fn an_agent_and_a_key_have_limits_of_their_own(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let limits = [
        ("limits.each_tenant.max_cost_per_month", "10.0"),
        ("limits.each_tenant.agent_spend.brief.max_cost_per_day", "0.04"),
    ];
    let app = start(&database, &mock, &limits).await;
    let narrow = RunLimits {
        spend: SpendLimits {
            day: Cost::from_dollars(0.02),
            month: None,
        },
        ..RunLimits::default()
    };
    let scopes = [Scope::RunsWrite, Scope::SessionsRead];
    let (key_id, narrow) = app.make_key_with("default", &scopes, narrow).await;
    let (_, wide) = app.make_key("default", &scopes).await;
    let ask_as = async |key: &str, agent: &str| {
        let request = app.request(Method::POST, "/v1/runs").bearer_auth(key);
        read(with_json(request, &json!({"agent": agent, "input": INPUT}))).await
    };
    assert_members!(ask_as(&narrow, "brief").await.ok(), {"status": "completed"});
    assert!(
        refused(&ask_as(&narrow, "calc").await)["detail"]
            .as_str()
            .unwrap()
            .starts_with("the API key ")
    );
    assert_members!(ask_as(&wide, "brief").await.ok(), {"status": "completed"});
    assert!(
        refused(&ask_as(&wide, "brief").await)["detail"]
            .as_str()
            .unwrap()
            .starts_with("the agent \"brief\" ")
    );
    assert_members!(ask_as(&wide, "calc").await.ok(), {"status": "completed"});
    for (key, scopes) in [
        (
            &narrow,
            vec!["tenant".to_owned(), "agent:brief".to_owned(), format!("key:{key_id}")],
        ),
        (&wide, vec!["tenant".to_owned(), "agent:brief".to_owned()]),
    ] {
        let request = app.request(Method::GET, "/v1/spend").bearer_auth(key);
        let spend = read(request).await.ok();
        let shown: Vec<_> = spend["limits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|limit| limit["scope"].clone())
            .collect();
        assert_eq!(shown, scopes);
        assert_eq!(spend["limits"][0]["spent"], 0.06);
    }
    app.finish().await;
}

async fn a_light_run_pays_one_statement_more_where_a_limit_is_set(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    for (limits, reservations) in [(&[][..], 0), (&[("limits.each_tenant.max_cost_per_day", "10.0")], 1)] {
        let app = start(&database, &mock, &[limits, &[("metrics.enabled", "true")]].concat()).await;
        // The first run of a day makes the row of the limit.
        ask(&app).await.ok();
        let before = writes(&app).await;
        ask(&app).await.ok();
        let after = writes(&app).await;
        let made = |operation: &str| {
            let count = |counts: &BTreeMap<String, u64>| counts.get(operation).copied().unwrap_or_default();
            count(&after) - count(&before)
        };
        assert_eq!((made("reserve spending"), made("commit session")), (reservations, 1));
        assert_eq!((made("settle spending"), made("record run")), (0, 0));
        app.finish().await;
    }
}

/// Counts the operations on the store.
async fn writes(app: &TestApp) -> BTreeMap<String, u64> {
    let text = app.try_get("/metrics").await.text();
    let name = "agent_runtime_store_operation_duration_seconds_count{operation=\"";
    let lines = text.lines().filter_map(|line| line.strip_prefix(name)?.split_once('"'));
    let mut counts = BTreeMap::new();
    for (operation, rest) in lines {
        let count: u64 = rest.rsplit_once(' ').unwrap().1.parse().unwrap();
        *counts.entry(operation.to_owned()).or_default() += count;
    }
    counts
}

async fn runs_at_once_never_pass_the_limit(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let limits = [
        ("limits.each_tenant.max_cost_per_day", "1.0"),
        ("limits.each_tenant.max_cost_per_month", "1.5"),
    ];
    let first = start(&database, &mock, &limits).await;
    // SQLite has one process.
    let second = match database.engine {
        test_support::databases::Engine::Postgres => Some(start(&database, &mock, &limits).await),
        test_support::databases::Engine::Sqlite => None,
    };
    let apps = [Some(&first), second.as_ref()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    let answers = stream::iter(0..10_000).map(|number: usize| ask(apps[number % apps.len()]));
    let answers: Vec<_> = answers.buffer_unordered(16).collect().await;
    let mut completed = 0;
    for answer in &answers {
        if answer.status == StatusCode::PAYMENT_REQUIRED {
            continue;
        }
        completed += usize::from(answer.json()["status"] == "completed");
    }
    assert_eq!(completed, mock.asked());
    assert_within(&first, 1.0, 16).await;
    first.finish().await;
    if let Some(second) = second {
        second.finish().await;
    }
}

/// Checks that the limit of the day is spent, and exceeded by no more than what the model writes
/// beyond what it may: this one always writes five tokens, of a cent together.
async fn assert_within(app: &TestApp, limit: f64, requests_at_once: u32) {
    let (spent, reserved) = amounts(app).await[0];
    let bound = limit + 0.01 * f64::from(requests_at_once);
    assert!((limit - 0.02..=bound).contains(&spent), "{spent}");
    assert!(reserved.abs() < 1e-9, "{reserved}");
}

async fn replicas_at_midnight_count_each_run_in_one_day(database: TestDatabase) {
    if database.engine == test_support::databases::Engine::Sqlite {
        // A file has one process, which has one clock.
        return;
    }
    let mock = MockModel::echoing().await;
    let limits = [("limits.each_tenant.max_cost_per_day", "0.2")];
    let (late, early) = (
        start(&database, &mock, &limits).await,
        start(&database, &mock, &limits).await,
    );
    let midnight = (late.clock.now() + TimeDelta::days(1))
        .date_naive()
        .and_time(chrono::NaiveTime::MIN)
        .and_utc();
    late.clock.advance(midnight - TimeDelta::seconds(30) - late.clock.now());
    early.clock.advance(midnight - early.clock.now());
    let answers = stream::iter(0..40).map(|number| ask(if number % 2 == 0 { &late } else { &early }));
    let answers: Vec<_> = answers.buffer_unordered(8).collect().await;
    assert!(
        answers
            .iter()
            .any(|answer| answer.status == StatusCode::PAYMENT_REQUIRED)
    );
    assert_within(&late, 0.2, 8).await;
    assert_within(&early, 0.2, 8).await;
    late.finish().await;
    early.finish().await;
}

async fn a_clock_that_is_set_back_opens_no_second_day(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = start(&database, &mock, &[("limits.each_tenant.max_cost_per_day", "0.02")]).await;
    let midnight = (app.clock.now() + TimeDelta::days(1))
        .date_naive()
        .and_time(chrono::NaiveTime::MIN)
        .and_utc();
    app.clock.advance(midnight - TimeDelta::minutes(30) - app.clock.now());
    assert_members!(ask(&app).await.ok(), {"status": "completed"});
    for _ in 0..2 {
        refused(&ask(&app).await);
        app.clock.advance(TimeDelta::hours(1));
        let next_day = ask(&app).await;
        assert!([StatusCode::OK, StatusCode::PAYMENT_REQUIRED].contains(&next_day.status));
        refused(&ask(&app).await);
        app.clock.advance(TimeDelta::hours(-1));
    }
    assert_eq!(mock.asked(), 2);
    app.finish().await;
}

async fn a_refused_run_has_reserved_nothing(database: TestDatabase) {
    let gate = Gate::new();
    let held = Arc::clone(&gate);
    let mock = MockModel::start(move |request| match last_user_text(request).as_str() {
        "wait" => Reply::HeldAtEnd(Arc::clone(&held), vec!["so ".to_owned()]),
        _ => Reply::text("done"),
    })
    .await;
    let app = start(&database, &mock, &[("limits.each_tenant.max_cost_per_day", "10.0")]).await;
    let base = app.run_with(json!({"agent": "brief", "input": INPUT})).await["session_id"].clone();
    let body = |input: &str| json!({"agent": "brief", "input": input, "base_session_id": base, "conflict": "reject"});
    let (first_body, second_body) = (body("wait"), body(INPUT));
    let first = app.post("/v1/runs", &first_body);
    let second = async {
        until("the first run has asked its model", async || mock.asked() == 2).await;
        let [(_, reserved)] = amounts(&app).await[..] else {
            panic!()
        };
        assert!(reserved > 0.0);
        app.post("/v1/runs", &second_body)
            .await
            .assert_problem("base_session_conflict");
        assert!((amounts(&app).await[0].1 - reserved).abs() < 1e-9);
        gate.open(1);
    };
    let (first, ()) = tokio::join!(first, second);
    assert_members!(first.ok(), {"status": "completed"});
    assert!(amounts(&app).await[0].1.abs() < 1e-9);
    app.finish().await;
}

async fn what_is_spent_is_reported_once(database: TestDatabase) {
    let receiver = WebhookReceiver::start(|_| Reaction::Status(204, String::new())).await;
    let webhook = format!("{{ url = '{}' }}", receiver.url("/spending"));
    let mock = MockModel::echoing().await;
    let settings = [
        ("limits.each_tenant.max_cost_per_day", "0.04"),
        ("limits.each_tenant.spend_webhook", webhook.as_str()),
        ("webhooks.allow_private_addresses", "true"),
        ("webhooks.allow_http", "true"),
    ];
    for (percent, spent) in [(50, 0.02), (100, 0.04)] {
        let app = start(&database, &mock, &settings).await;
        ask(&app).await.ok();
        app.finish().await;
        // Replicas look after what is spent when they begin.
        let app = start(&database, &mock, &settings).await;
        until("the message has come", async || {
            receiver.received().len() == if percent == 50 { 1 } else { 2 }
        })
        .await;
        let message = receiver.received().pop().unwrap().json();
        assert_members!(message, {"type": "spend.threshold", "tenant": "default", "data/scope": "tenant",
            "data/percent": percent, "data/limit": 0.04, "data/spent": spent});
        let deliveries = app.get("/v1/webhooks/deliveries").await;
        assert_members!(deliveries, {"data/0/event": "spend.threshold", "data/0/run_id": null});
        app.finish().await;
    }
    assert_eq!(receiver.received().len(), 2);
}

async fn usage_is_summed_as_json_and_as_csv(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = start(&database, &mock, &[]).await;
    app.put_agent("unpriced", json!({"model": "mock/other"})).await;
    for agent in ["brief", "unpriced", "brief"] {
        let result = app.run_with(json!({"agent": agent, "input": INPUT})).await;
        assert_eq!(result["status"], "completed");
    }
    let today = app.clock.now().date_naive();
    let report = app.get("/v1/usage?by=agent,model").await;
    assert_members!(report, {"to": today.to_string(), "time_zone": "UTC"});
    let row = |agent: &str, model: &str, runs: u64, unknown: u64, cost: f64| {
        json!({"agent": agent, "model": model, "runs": runs, "cost_unknown_runs": unknown, "cost": cost,
            "input_tokens": 10 * runs, "output_tokens": 5 * runs, "cache_read_tokens": 0, "cache_write_tokens": 0,
            "reasoning_tokens": 0, "total_tokens": 15 * runs})
    };
    assert_eq!(
        report["rows"],
        json!([
            row("brief", "mock/m", 2, 0, 0.04),
            row("unpriced", "mock/other", 1, 1, 0.0)
        ])
    );
    let by_day = app.get(&format!("/v1/usage?from={today}&to={today}")).await;
    assert_eq!(by_day["rows"].as_array().unwrap().len(), 1);
    assert_members!(by_day, {"rows/0/day": today.to_string(), "rows/0/runs": 3, "rows/0/cost": 0.04});
    assert_eq!(
        app.get("/v1/usage?from=2026-01-01&to=2026-01-31").await["rows"],
        json!([])
    );
    let csv = app.try_get("/v1/usage?by=day,agent,key&format=csv").await;
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    let expected = format!(
        "day,agent,key,runs,cost_unknown_runs,cost,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,reasoning_tokens,total_tokens\n\
         {today},brief,,2,0,0.04,20,10,0,0,0,30\n{today},unpriced,,1,1,0,10,5,0,0,0,15\n"
    );
    assert_eq!(csv.text(), expected);
    for (query, parameter) in [
        ("by=moon", "by"),
        ("format=xml", "format"),
        ("from=2026-13-01", "from"),
        ("from=2024-01-01&to=2026-01-01", "from"),
        ("from=2026-01-02&to=2026-01-01", "to"),
    ] {
        app.try_get(&format!("/v1/usage?{query}"))
            .await
            .assert_problem_at("invalid_parameter", parameter);
    }
    let (key_id, secret) = app.make_key("default", &[Scope::SessionsRead, Scope::RunsWrite]).await;
    let with_key = |method, path: &str| app.request(method, path).bearer_auth(&secret);
    let run = with_json(
        with_key(Method::POST, "/v1/runs"),
        &json!({"agent": "brief", "input": INPUT}),
    );
    assert_eq!(read(run).await.ok()["status"], "completed");
    let by_key = read(with_key(Method::GET, "/v1/usage?by=key")).await.ok();
    let keys: Vec<_> = by_key["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["key"], &row["runs"]))
        .collect();
    assert_eq!(keys, [(&json!(""), &json!(3)), (&json!(key_id), &json!(1))]);
    app.finish().await;
}
