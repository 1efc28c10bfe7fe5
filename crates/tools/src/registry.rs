//! The known tools, by name, each with its compiled schema. Makes executors and executes nothing
//! itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call_limits::CallLimits;
use super::executor::{CheckedExecutor, RegisteredTool};
use agent::deferred_tools::{SEARCH_TOOLS, is_deferred};
use agent::ports::{Tool, ToolCatalog, ToolExecutor, ToolSetError, ToolSpec, UnknownTool};
use values::clock::Clock;
use values::ids::IdSource;
use values::json::{JsonSchema, SchemaError, Value};
use values::limits::Pattern;

/// All tools of the service.
#[derive(Debug)]
pub struct ToolRegistry {
    tools: BTreeMap<String, Arc<RegisteredTool>>,
    limits: CallLimits,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

/// A tool that can't be registered.
#[derive(Debug, thiserror::Error)]
pub enum ToolRegistryError {
    /// Two tools have one name.
    #[error("two tools are named {name:?}")]
    DuplicateName { name: String },
    /// Models can't call a tool of this name.
    #[error("a tool is named by 1 to 64 letters, digits, - and _, not {name:?}")]
    InvalidName { name: String },
    /// The arguments' schema is unusable.
    #[error("the schema of the tool {name:?} can't be used")]
    InvalidSchema {
        /// The tool.
        name: String,
        /// The fault of its schema.
        #[source]
        source: SchemaError,
    },
}

impl ToolRegistry {
    /// Registers tools and compiles their schemas.
    pub fn new(
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
        limits: CallLimits,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Result<Self, ToolRegistryError> {
        let mut registered = BTreeMap::new();
        for tool in tools {
            let name = tool.spec().name.clone();
            let tool = Arc::new(register(tool)?);
            if registered.insert(name.clone(), tool).is_some() {
                return Err(ToolRegistryError::DuplicateName { name });
            }
        }
        Ok(Self {
            tools: registered,
            limits,
            clock,
            ids,
        })
    }

    /// Iterates over the descriptions of the tools, by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|registered| registered.tool.spec())
    }

    fn known(&self) -> String {
        let names: Vec<_> = self.tools.keys().map(String::as_str).collect();
        names.join(", ")
    }

    fn chosen(&self, names: &[String]) -> Result<Vec<Arc<RegisteredTool>>, UnknownTool> {
        let mut chosen: Vec<Arc<RegisteredTool>> = Vec::new();
        for name in names {
            let registered = self.tools.get(name).ok_or_else(|| UnknownTool {
                name: name.clone(),
                known: self.known(),
            })?;
            // Providers refuse a request that offers one tool twice.
            if !chosen.iter().any(|other| Arc::ptr_eq(other, registered)) {
                chosen.push(Arc::clone(registered));
            }
        }
        Ok(chosen)
    }

    fn executor_of(
        &self,
        tools: Vec<Arc<RegisteredTool>>,
        deferred: Vec<Arc<RegisteredTool>>,
    ) -> Arc<dyn ToolExecutor> {
        Arc::new(CheckedExecutor::new(
            tools,
            deferred,
            self.limits,
            Arc::clone(&self.clock),
            Arc::clone(&self.ids),
        ))
    }
}

impl ToolCatalog for ToolRegistry {
    fn names(&self) -> Vec<String> {
        self.tools.keys().cloned().collect()
    }

    fn executor(&self, names: &[String]) -> Result<Arc<dyn ToolExecutor>, UnknownTool> {
        Ok(self.executor_of(self.chosen(names)?, Vec::new()))
    }

    fn executor_with(
        &self,
        names: &[String],
        deferred: &[Pattern],
        own: Vec<Arc<dyn Tool>>,
    ) -> Result<Arc<dyn ToolExecutor>, ToolSetError> {
        let tools = self.chosen(names)?;
        // A model without the tool that finds the others is shown all of them.
        let patterns = if names.iter().any(|name| name == SEARCH_TOOLS) {
            deferred
        } else {
            &[]
        };
        let is_deferred_name = |name: &str| is_deferred(patterns, name);
        let is_deferred = |tool: &Arc<RegisteredTool>| is_deferred_name(&tool.tool.spec().name);
        let (mut deferred, mut tools): (Vec<_>, Vec<_>) = tools.into_iter().partition(is_deferred);
        for tool in own {
            let name = tool.spec().name.clone();
            let registered = register(tool).map_err(|error| ToolSetError::Unusable {
                name: name.clone(),
                source: error.into(),
            })?;
            deferred.retain(|other| other.tool.spec().name != name);
            tools.retain(|other| other.tool.spec().name != name);
            if registered.tool.may_be_deferred() && is_deferred_name(&name) {
                deferred.push(Arc::new(registered));
            } else {
                tools.push(Arc::new(registered));
            }
        }
        Ok(self.executor_of(tools, deferred))
    }
}

fn register(tool: Arc<dyn Tool>) -> Result<RegisteredTool, ToolRegistryError> {
    let ToolSpec { name, parameters, .. } = tool.spec();
    let schema = checked_schema(name, parameters, tool.compiled_parameters())?;
    Ok(RegisteredTool { tool, schema })
}

/// Checks the name of a tool. Returns the schema of its arguments, compiled unless it is already.
pub(super) fn checked_schema(
    name: &str,
    parameters: &Value,
    compiled: Option<Arc<JsonSchema>>,
) -> Result<Arc<JsonSchema>, ToolRegistryError> {
    let name = name.to_owned();
    if !ToolSpec::is_valid_name(&name) {
        return Err(ToolRegistryError::InvalidName { name });
    }
    let schema = compiled.map_or_else(|| JsonSchema::compile_object(parameters).map(Arc::new), Ok);
    schema.map_err(|source| ToolRegistryError::InvalidSchema { name, source })
}
