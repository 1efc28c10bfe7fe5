//! Makes the tools of a definition, and executes their calls: retries, time and size.

mod attempts;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use self::attempts::Attempts;
use super::declared::{checked_parameters, declared};
use super::definition::{HttpToolDefinition, HttpToolSource, ValueSource};
use super::failure::failed;
use super::headers::{header_name, is_connection_header};
use super::openapi::operations;
use super::operation::Operation;
use super::plan::{RequestPlan, Slot};
use super::secrets::{Redactor, SecretValue, ToolSecrets};
use super::template::Template;
use crate::fault::DefinitionFault;
use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use net::outgoing::{
    AddressRules, HeaderMap, HeaderName, HeaderValue, OutgoingClient, OutgoingRequest, PrivateAddresses, RuleKeys,
};
use net::trace_header::trace_header;
use values::clock::Clock;
use values::json::{JsonSchema, Object, Value};

/// How long the executor waits beyond the timeout, so that the tool's own error comes first.
const GRACE: Duration = Duration::from_secs(1);

/// A tool that sends a request.
#[derive(Debug)]
struct HttpTool {
    spec: ToolSpec,
    schema: Option<Arc<JsonSchema>>,
    plan: RequestPlan,
    attempts: Attempts,
    redactor: Redactor,
    response: Option<String>,
    idempotency_header: Option<HeaderName>,
    max_redirects: usize,
    trace_context: bool,
}

impl HttpToolDefinition {
    /// Returns the rules of the definition's client.
    pub fn rules(&self) -> AddressRules {
        AddressRules {
            allow_http: self.allow_http,
            private: PrivateAddresses::In(self.allow_networks.clone()),
            ..AddressRules::public(RuleKeys {
                allow_http: "allow_http",
                private: "allow_networks",
            })
        }
    }
}

/// Makes the tools of a definition. `document` is the OpenAPI document that it names, if it names
/// one.
pub fn http_tools(
    definition: &HttpToolDefinition,
    document: Option<&Value>,
    secrets: &ToolSecrets,
    client: &OutgoingClient,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<Arc<dyn Tool>>, DefinitionFault> {
    let operations = match definition.source()? {
        HttpToolSource::Declared(request) => vec![declared(&definition.name, request)],
        HttpToolSource::OpenApi(chosen) => operations(document.unwrap_or(&Value::Null), &chosen)?,
    };
    let made = operations.into_iter().map(|operation| {
        let tool = HttpTool::new(operation?, definition, secrets, client, clock)?;
        Ok(Arc::new(tool) as Arc<dyn Tool>)
    });
    let (mut tools, mut faults) = (Vec::new(), Vec::new());
    for made in made {
        match made {
            Ok(tool) => tools.push(tool),
            Err(fault) => faults.push(fault),
        }
    }
    // A document may have operations that no tool can be made of. The others are used.
    if tools.is_empty()
        && let Some(fault) = faults.pop()
    {
        return Err(fault);
    }
    for problem in faults {
        let name = &definition.name;
        tracing::warn!(definition = name, %problem, "an operation of an OpenAPI document is left out");
    }
    Ok(tools)
}

impl HttpTool {
    fn new(
        operation: Operation,
        definition: &HttpToolDefinition,
        secrets: &ToolSecrets,
        client: &OutgoingClient,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, DefinitionFault> {
        let Operation {
            name,
            description,
            parameters,
            schema,
            mut plan,
        } = operation;
        for (name, source) in &definition.headers {
            plan.headers.push(header(name, source, secrets)?);
        }
        for (name, source) in &definition.query {
            let key = format!("query.{name}");
            plan.query.push((name.clone(), slot(&key, source, secrets)?));
        }
        if let Some(pointer) = definition
            .response
            .as_ref()
            .filter(|pointer| !pointer.is_empty() && !pointer.starts_with('/'))
        {
            let problem = format!("{pointer:?} is no JSON pointer such as \"/data/items\"");
            return Err(DefinitionFault::new("response", problem));
        }
        let parameters = checked_parameters(parameters, &plan)?;
        check_target(&plan, client)?;
        let idempotent = definition.idempotent.unwrap_or(plan.method.is_safe());
        Ok(Self {
            spec: ToolSpec {
                name,
                description,
                parameters,
                idempotent,
                read_only: plan.method.is_safe(),
                destructive: !plan.method.is_safe(),
                timeout: Some(definition.timeout + GRACE),
            },
            schema,
            attempts: Attempts {
                client: client.clone(),
                clock: Arc::clone(clock),
                timeout: definition.timeout,
                max_retries: if idempotent { definition.max_retries } else { 0 },
                max_response_bytes: definition.max_response_bytes,
            },
            redactor: Redactor::new(plan.secrets()),
            response: definition.response.clone(),
            idempotency_header: idempotency_header(definition, &plan)?,
            max_redirects: definition.max_redirects,
            trace_context: definition.trace_context,
            plan,
        })
    }

    async fn send(&self, arguments: &Object, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let prepared = self.plan.prepare(arguments).map_err(ToolError::new)?;
        let target = self.attempts.client.target(&prepared.url);
        let target = target.map_err(|fault| ToolError::new(format!("the url can't be used: {fault}")))?;
        let mut headers = prepared.headers;
        if let Some(name) = &self.idempotency_header
            && let Ok(key) = HeaderValue::from_str(&context.idempotency_key)
            && !key.is_empty()
        {
            headers.insert(name.clone(), key);
        }
        if self.trace_context {
            headers.extend(context.trace.and_then(trace_header));
        }
        let host = target.host().to_owned();
        let request = OutgoingRequest {
            method: self.plan.method.into(),
            target,
            headers: HeaderMap::new(),
            origin_headers: headers,
            body: prepared.body,
            max_redirects: self.max_redirects,
        };
        let answer = self.attempts.run(request).await;
        let answer = answer.map_err(|error| failed(&self.spec.name, &host, &error))?;
        if answer.status >= 400 {
            let (tool, status) = (&self.spec.name, answer.status);
            tracing::info!(tool, host, status, "a tool got an error over HTTP");
        }
        answer.into_result(self.response.as_deref(), &self.redactor)
    }
}

impl Tool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            self.send(&arguments, context).await
        })
    }

    fn compiled_parameters(&self) -> Option<Arc<JsonSchema>> {
        self.schema.clone()
    }

    fn stores_long_output(&self) -> bool {
        true
    }
}

/// Checks the URL with sample arguments. Arguments never change the checked part.
fn check_target(plan: &RequestPlan, client: &OutgoingClient) -> Result<(), DefinitionFault> {
    let target = client.target(plan.path.origin());
    target
        .map(drop)
        .map_err(|fault| DefinitionFault::new("url", fault.to_string()))
}

fn header(name: &str, source: &ValueSource, secrets: &ToolSecrets) -> Result<(HeaderName, Slot), DefinitionFault> {
    let key = format!("headers.{name}");
    let parsed = header_name(&key, name, source)?;
    let slot = slot(&key, source, secrets)?;
    if let Slot::Secret(secret) = &slot {
        let value = secret.exposed();
        let is_sendable = value.is_ascii() && HeaderValue::from_str(&value).is_ok();
        if !is_sendable {
            return Err(DefinitionFault::new(key, "the secret can't be sent in a header"));
        }
    }
    Ok((parsed, slot))
}

fn slot(key: &str, source: &ValueSource, secrets: &ToolSecrets) -> Result<Slot, DefinitionFault> {
    Ok(match source {
        ValueSource::Text(text) => {
            let template = Template::parse(text).map_err(|problem| DefinitionFault::new(key, problem))?;
            Slot::Text(template)
        }
        ValueSource::Secret(reference) => {
            Slot::Secret(SecretValue::find(secrets, key, &reference.secret, &reference.prefix)?)
        }
    })
}

/// Returns the header for the idempotency key. Requests that only read have none.
fn idempotency_header(
    definition: &HttpToolDefinition,
    plan: &RequestPlan,
) -> Result<Option<HeaderName>, DefinitionFault> {
    let name = definition.idempotency_header.as_str();
    if name.is_empty() || plan.method.is_safe() {
        return Ok(None);
    }
    let parsed = name.parse::<HeaderName>().ok();
    let parsed = parsed.filter(|name| !is_connection_header(name.as_str()));
    let fault = || DefinitionFault::new("idempotency_header", "is not the name of a header that can be set");
    parsed.map(Some).ok_or_else(fault)
}
