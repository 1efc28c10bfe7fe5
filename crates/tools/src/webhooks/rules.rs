//! The rules for webhooks that receive the ends of runs. They come from the sender and the
//! configured secrets. Sends nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::secrets::{WebhookSecret, find_keys};
use super::sender::WebhookSender;
use agent::ports::{RunWebhook, WebhookFault, WebhookRules};
use values::tenant::TenantId;

/// The longest address, in bytes.
const MAX_URL: usize = 2_048;

/// Accepts the webhooks that the sender can send to.
#[derive(Debug)]
pub struct SenderRules {
    sender: Arc<WebhookSender>,
    secrets: BTreeMap<String, WebhookSecret>,
}

impl SenderRules {
    /// Makes the rules of a sender that signs with the secrets, by name.
    pub fn new(sender: Arc<WebhookSender>, secrets: BTreeMap<String, WebhookSecret>) -> Self {
        Self { sender, secrets }
    }
}

impl WebhookRules for SenderRules {
    fn check(&self, webhook: &RunWebhook, tenant: Option<&TenantId>) -> Result<(), WebhookFault> {
        let fault = |field| move |message| WebhookFault { field, message };
        if webhook.url.len() > MAX_URL {
            return Err(fault("webhook.url")(format!("it has more than {MAX_URL} bytes")));
        }
        let endpoint = self.sender.endpoint(&webhook.url);
        endpoint.map_err(|error| fault("webhook.url")(error.to_string()))?;
        if let Some(name) = &webhook.secret {
            find_keys(&self.secrets, name, tenant).map_err(fault("webhook.secret"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::secrets::SecretTenants;
    use super::super::sender::{SenderSettings, SigningKeys};
    use super::*;

    fn rules() -> SenderRules {
        let keys = SigningKeys::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let acme: TenantId = "acme".parse().unwrap();
        let secret = |keys, tenants| WebhookSecret { keys, tenants };
        let nobody = SecretTenants::These(BTreeSet::new());
        let secrets = BTreeMap::from([
            ("main".to_owned(), secret(Some(keys.clone()), SecretTenants::All)),
            (
                "acme".to_owned(),
                secret(Some(keys.clone()), SecretTenants::These(BTreeSet::from([acme]))),
            ),
            ("nobody".to_owned(), secret(Some(keys), nobody)),
            ("empty".to_owned(), secret(None, SecretTenants::All)),
        ]);
        SenderRules::new(
            Arc::new(WebhookSender::new(SenderSettings::default()).unwrap()),
            secrets,
        )
    }

    #[test]
    fn a_webhook_is_checked_for_its_address_and_its_secret() {
        let long = format!("https://example.org/{}", "x".repeat(MAX_URL));
        let (rules, other) = (rules(), "other".parse::<TenantId>().unwrap());
        let ends = "https://example.org/ends";
        let unset = "secret: the operator has not set the secret \"empty\"";
        for (url, secret, tenant, expected) in [
            (ends, None, Some(&other), ""),
            (ends, Some("main"), Some(&other), ""),
            (ends, Some("acme"), None, ""),
            (ends, Some("acme"), Some(&other), "secret: no secret is named \"acme\""),
            (
                ends,
                Some("nobody"),
                Some(&other),
                "secret: no secret is named \"nobody\"",
            ),
            (ends, Some("none"), None, "secret: no secret is named \"none\""),
            (ends, Some("empty"), None, unset),
            (
                "ftp://a.org/",
                Some("none"),
                None,
                "url: its scheme is neither https nor http",
            ),
            (&long, None, None, "url: it has more than 2048 bytes"),
        ] {
            let webhook = RunWebhook {
                url: url.to_owned(),
                events: Vec::new(),
                secret: secret.map(str::to_owned),
                trace_context: true,
            };
            let checked = rules.check(&webhook, tenant);
            let found = checked.map_or_else(
                |fault| format!("{}: {}", fault.field, fault.message),
                |()| String::new(),
            );
            assert_eq!(
                found.trim_start_matches("webhook."),
                expected,
                "{url} {secret:?} {tenant:?}"
            );
        }
    }
}
