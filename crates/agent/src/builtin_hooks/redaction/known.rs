//! Compiled patterns, shared by all active executions with the same configuration.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::patterns::{Patterns, RedactionConfig};
use tasks::off_thread::off_thread;
use values::tenant::TenantId;

/// The patterns of all running executions, held weakly.
#[derive(Debug, Default)]
pub(super) struct KnownPatterns(Mutex<HashMap<RedactionConfig, Weak<Patterns>>>);

impl KnownPatterns {
    /// Returns the compiled patterns. Compiles them off the async workers if no execution uses them
    /// yet.
    pub(super) async fn patterns(&self, tenant: &TenantId, config: &RedactionConfig) -> Result<Arc<Patterns>, String> {
        if let Some(patterns) = self.known(config) {
            return Ok(patterns);
        }
        let config = config.clone();
        let (config, patterns) = off_thread(tenant, move || {
            let patterns = Patterns::of(&config);
            (config, patterns)
        })
        .await;
        let patterns = Arc::new(patterns?);
        let mut known = self.0.lock();
        // Another execution may have compiled them meanwhile.
        if let Some(patterns) = known.get(&config).and_then(Weak::upgrade) {
            return Ok(patterns);
        }
        known.retain(|_, patterns| patterns.strong_count() > 0);
        known.insert(config, Arc::downgrade(&patterns));
        Ok(patterns)
    }

    fn known(&self, config: &RedactionConfig) -> Option<Arc<Patterns>> {
        let known = self.0.lock();
        known.get(config)?.upgrade()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn patterns_are_compiled_once_while_they_are_in_use() {
        let config = |regex: &str| -> RedactionConfig {
            serde_json::from_value(json!({"patterns": [{"name": "p", "regex": regex, "replacement": "-"}]})).unwrap()
        };
        let (known, tenant) = (KnownPatterns::default(), TenantId::anonymous());
        let one = known.patterns(&tenant, &config("a")).await.unwrap();
        let same = known.patterns(&tenant, &config("a")).await.unwrap();
        let other = known.patterns(&tenant, &config("b")).await.unwrap();
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        assert!(known.patterns(&tenant, &config("(")).await.is_err());
        drop((one, same));
        assert!(known.known(&config("a")).is_none());
        known.patterns(&tenant, &config("c")).await.unwrap();
        assert_eq!(known.0.lock().len(), 2);
    }
}
