//! The alerts and the dashboard: each metric that they name exists.

use std::collections::BTreeSet;

use agent_runtime::metrics::{Metrics, MetricsSettings};
use serde_json::{Value, json};

use super::blocks::read;

#[test]
fn alerts_and_the_dashboard_name_only_metrics_that_exist() {
    let settings = json!({"enabled": true, "listen": "", "tenants": []});
    let metrics = Metrics::new(&serde_json::from_value::<MetricsSettings>(settings).unwrap());
    let histogram_ends = ["_bucket", "_sum", "_count"];
    let known: BTreeSet<String> = metrics
        .described()
        .iter()
        .flat_map(|metric| {
            let ends = if metric.kind == "histogram" {
                &histogram_ends[..]
            } else {
                &[""]
            };
            ends.iter().map(|end| format!("{}{end}", metric.name))
        })
        .collect();
    let is_name = |word: &&str| word.starts_with("agent_runtime_") || word.starts_with("process_");
    for (page, least) in [
        ("docs/metrics/rules.yml", 7),
        ("docs/metrics/rules_test.yml", 6),
        ("docs/metrics/dashboard.json", 25),
    ] {
        let text = read(page);
        let words = text.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
        let named: BTreeSet<&str> = words.filter(is_name).collect();
        assert!(named.len() >= least, "{page}: {named:?}");
        let unknown: Vec<_> = named.iter().filter(|name| !known.contains(**name)).collect();
        assert!(unknown.is_empty(), "{page} names {unknown:?}");
    }
    let dashboard: Value = serde_json::from_str(&read("docs/metrics/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
}
