//! Maps the configuration to the settings that each module defines for itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use secrecy::ExposeSecret as _;

use crate::command_queue::CommandWorkerSettings;
use crate::config::{self, ALL_TENANTS, Config, PriorityScope, Role};
use crate::http::{HttpLimits, McpSettings};
use crate::outbox::OutboxSettings;
use crate::retention::RetentionSettings;
use crate::run::{QueueSettings, RunSettings, SubagentSettings};
use agent::AnswerExpiry;
use agent::state::ExecutionBudget;
use board::{BoardSettings, RedisSettings};
use models::{
    AwsCredentials, AwsSettings, CapSettings, ClientSettings, ProviderSettings, RetrySettings, TimeoutSettings,
};
use store::{ContentSettings, ObjectSettings, RetentionRules, StoreSettings};
use tools::ToolSettings;
use tools::webhooks::{SecretTenants, SenderSettings, SigningKeys, WebhookSecret};
use workspace::WorkspaceLimits;

pub(super) fn store(config: &Config) -> StoreSettings {
    StoreSettings {
        max_connections: config.store.max_connections,
        acquire_timeout: config.store.acquire_timeout,
        migrate: config.store.migrate,
        listen_url: config.store.listen_url.as_ref().map(|url| url.expose().into()),
    }
}

/// Returns what applies to the contents of the store.
pub(super) fn contents(config: &Config) -> ContentSettings {
    let objects = &config.store.objects;
    ContentSettings {
        limits: Arc::new(config.limits()),
        objects: objects.url.clone().map(|url| ObjectSettings {
            url,
            min_bytes: objects.min_bytes,
            options: objects.options.clone(),
        }),
    }
}

pub(super) fn board(config: &Config) -> BoardSettings {
    BoardSettings {
        event_retention: config.board.event_retention,
        max_run_event_bytes: config.board.max_run_event_bytes,
        max_live_event_bytes: config.board.max_live_event_bytes,
        max_ended_event_bytes: config.board.max_ended_event_bytes,
    }
}

pub(super) fn redis_board(config: &Config) -> anyhow::Result<RedisSettings> {
    let read = |path: &PathBuf| {
        let ca = fs::read(path);
        ca.with_context(|| format!("can't read `board.ca_file` {}", path.display()))
    };
    Ok(RedisSettings {
        ca: config.board.ca_file.as_ref().map(read).transpose()?,
        board: board(config),
        ..RedisSettings::default()
    })
}

pub(super) fn budget(config: &Config) -> ExecutionBudget {
    let budget = &config.runs.budget;
    ExecutionBudget {
        max_steps: Some(budget.max_steps),
        max_tokens: budget.max_tokens,
        max_seconds: Some(budget.max_seconds.into()),
        max_cost: budget.max_cost,
        deadline: None,
    }
}

pub(super) fn runs(config: &Config) -> RunSettings {
    RunSettings {
        default_agent: config.runs.default_agent.clone(),
        max_concurrent: config.runs.max_concurrent,
        budget: budget(config),
        commit_patience: config.runs.commit_patience,
        subagents: SubagentSettings {
            max: config.runs.max_subagents,
            concurrency: config.runs.subagent_concurrency,
            max_concurrent: config.runs.max_concurrent_subagents,
        },
        answer_expiry: AnswerExpiry {
            default: config.runs.answer_expiry,
            max: config.runs.max_answer_expiry,
        },
        max_record_bytes: config.runs.max_record_bytes,
        max_model_request_bytes: config.runs.max_model_request_bytes,
        workspace: workspace(config),
        queue: queue(config),
        idempotency_retention: config.idempotency.retention,
    }
}

fn queue(config: &Config) -> QueueSettings {
    let queue = &config.queue;
    QueueSettings {
        concurrency: if queue.role == Role::Api { 0 } else { queue.concurrency },
        lease: queue.lease,
        poll_interval: queue.poll_interval,
        max_waiting: queue.max_waiting,
        ranks_tenants: queue.priority == PriorityScope::Global,
        max_attempts: queue.max_attempts,
    }
}

pub(super) fn workspace(config: &Config) -> WorkspaceLimits {
    let limits = &config.workspace;
    WorkspaceLimits {
        file_bytes: limits.max_file_bytes,
        files: limits.max_files,
        bytes: limits.max_bytes,
    }
}

/// Returns the settings of a worker for commands.
pub(super) fn command_worker(config: &Config) -> CommandWorkerSettings {
    CommandWorkerSettings {
        concurrency: config.sandbox.worker_commands,
        poll_interval: config.queue.poll_interval,
        workspace: workspace(config),
    }
}

pub(super) fn retention(config: &Config) -> RetentionSettings {
    let retention = &config.retention;
    RetentionSettings {
        rules: RetentionRules {
            max_age: retention.max_age,
            min_age: retention.min_age,
            keep_last: retention.keep_last,
            events: retention.events,
            deliveries: retention.deliveries,
            unreferenced_contents: retention.unreferenced_contents,
        },
        interval: retention.interval,
        batch: retention.batch,
    }
}

pub(super) fn tools(config: &Config) -> ToolSettings {
    ToolSettings {
        concurrency: config.runs.tool_concurrency,
        max_calls: config.runs.max_calls_per_step,
        timeout: config.runs.tool_timeout,
        max_output_bytes: config.runs.max_tool_output_bytes,
    }
}

pub(super) fn http(config: &Config) -> HttpLimits {
    HttpLimits {
        max_body_bytes: config.http.max_body_bytes,
        max_json_depth: config.http.max_json_depth,
        max_json_values: config.http.max_json_values,
        max_header_bytes: config.http.max_header_bytes,
        allowed_hosts: config.http.allowed_hosts.clone(),
        is_exposed: config.http.insecure_no_auth,
        header_timeout: config.http.header_timeout,
        request_timeout: config.http.request_timeout,
        min_transfer_rate: config.http.min_transfer_rate,
        max_bytes_in_flight: config.http.max_bytes_in_flight,
        max_connections: config.http.max_connections,
        max_input_messages: config.runs.max_input_messages,
        keep_alive_interval: config.http.keep_alive_interval,
    }
}

/// Reads the settings of `/mcp`; `None` if it is not served.
pub(super) fn mcp(config: &Config) -> anyhow::Result<Option<McpSettings>> {
    let mcp = &config.http.mcp;
    if !mcp.enabled {
        return Ok(None);
    }
    let key = mcp.state_key.as_ref().map(|key| key.expose_secret().as_bytes());
    if key.is_none() && config.board.url.is_some() {
        tracing::warn!(
            "no key for the request states of MCP clients: a call that waits for answers can be answered by the same \
             process only (http.mcp.state_key_env)"
        );
    }
    let settings = McpSettings::new(mcp.allowed_origins.clone(), key);
    settings
        .map(Some)
        .context("the key that `http.mcp` names can't be used")
}

pub(super) fn client(config: &Config) -> ClientSettings {
    let models = &config.models;
    ClientSettings {
        timeouts: TimeoutSettings {
            connect: models.connect_timeout,
            first_byte: models.first_byte_timeout,
            idle: models.idle_timeout,
            total: models.total_timeout,
        },
        retries: RetrySettings {
            max_retries: models.max_retries,
            base_delay: models.retry_base_delay,
            max_delay: models.retry_max_delay,
        },
        caps: CapSettings {
            event_bytes: models.max_event_bytes,
            response_bytes: models.max_response_bytes,
            ..CapSettings::default()
        },
        ..ClientSettings::default()
    }
}

pub(super) fn webhooks(config: &Config) -> SenderSettings {
    let webhooks = &config.webhooks;
    SenderSettings {
        connect_timeout: webhooks.connect_timeout,
        timeout: webhooks.timeout,
        max_response_bytes: webhooks.max_response_bytes,
        allow_private_addresses: webhooks.allow_private_addresses,
        allow_http: webhooks.allow_http,
    }
}

pub(super) fn outbox(config: &Config) -> OutboxSettings {
    let webhooks = &config.webhooks;
    OutboxSettings {
        max_attempts: webhooks.max_attempts,
        retry_base_delay: webhooks.retry_base_delay,
        retry_max_delay: webhooks.retry_max_delay,
        concurrency: webhooks.delivery_concurrency,
        poll_interval: webhooks.poll_interval,
    }
}

/// Reads the signing secrets. A missing secret is an error only if a hook names it.
pub(super) fn webhook_secrets(config: &Config) -> anyhow::Result<BTreeMap<String, WebhookSecret>> {
    let secrets = config.webhooks.secrets.iter().map(|(name, source)| {
        let keys = source
            .secret
            .as_ref()
            .map(|secret| SigningKeys::parse(secret.expose_secret()));
        let keys = keys
            .transpose()
            .with_context(|| format!("webhooks.secrets.{name} can't be used"))?;
        let tenants = if source.tenants.contains(ALL_TENANTS) {
            SecretTenants::All
        } else {
            let tenants = source.tenants.iter().map(|tenant| tenant.parse());
            SecretTenants::These(tenants.collect::<Result<_, _>>()?)
        };
        Ok((name.clone(), WebhookSecret { keys, tenants }))
    });
    secrets.collect()
}

pub(super) fn providers(config: &Config) -> Vec<ProviderSettings> {
    config
        .providers
        .iter()
        .map(|(name, provider)| ProviderSettings {
            capabilities: Arc::new(config.capabilities_of(name)),
            ..settings_of(name, provider)
        })
        .collect()
}

fn settings_of(name: &str, provider: &config::ProviderConfig) -> ProviderSettings {
    let variable = provider.api_key_env.clone();
    let file = provider.api_key_file.as_ref().map(|path| path.display().to_string());
    ProviderSettings {
        base_url: provider.base_url.clone(),
        api_key: provider.api_key.clone(),
        api_key_source: [file.or(variable), credentials_source(&provider.aws)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", or "),
        models: provider.models.clone(),
        stream: provider.stream,
        structured_output: provider.structured_output,
        headers: provider.headers.clone(),
        aws: AwsSettings {
            region: provider.aws.region.clone().unwrap_or_default(),
            credentials: credentials(&provider.aws),
        },
        script: provider.script.clone(),
        max_output_tokens: provider.max_output_tokens.map(Into::into),
        think_tags: provider.think_tags,
        error_words: provider.error_words.clone(),
        ..ProviderSettings::new(name, provider.kind)
    }
}

fn credentials(aws: &config::AwsConfig) -> Option<AwsCredentials> {
    Some(AwsCredentials {
        access_key_id: aws.access_key_id.as_ref()?.expose_secret().to_owned(),
        secret_access_key: aws.secret_access_key.clone()?,
        session_token: aws.session_token.clone(),
    })
}

fn credentials_source(aws: &config::AwsConfig) -> Option<String> {
    let (id, key) = (aws.access_key_id_env.as_ref()?, aws.secret_access_key_env.as_ref()?);
    Some(format!("{id} and {key}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[test]
    fn defaults_of_modules_are_those_of_the_configuration() {
        let config = config::load(&Sources::default()).unwrap().config;
        assert_eq!(board(&config), BoardSettings::default());
        assert_eq!(webhooks(&config), SenderSettings::default());
        let (client, default) = (client(&config), ClientSettings::default());
        assert_eq!((client.timeouts, client.retries), (default.timeouts, default.retries));
        assert_eq!(client.caps, default.caps);
    }
}
