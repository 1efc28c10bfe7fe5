//! Tools that behave as a test wants, and count how many of their calls run at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use futures_util::future::BoxFuture;
use serde_json::json;
use values::json::Value;
use workspace::FilePath;

use crate::gate::Gate;

/// The effect of a call.
#[derive(Debug, Clone)]
pub enum Behaviour {
    Answer(String),
    Wait(Duration),
    Fail(String),
    /// Returns a result and ends the run.
    End(String),
    /// Fails and ends the run.
    FailAndEnd(String),
    PanicAtOnce,
    PanicLater,
    Hang,
    EchoArguments,
    /// Waits as many milliseconds as the argument `ms` asks for.
    WaitAsAsked,
    /// Waits at the gate.
    Held(Arc<Gate>),
    /// Waits at the gate, and writes the file `a` then.
    HeldBeforeWriting(Arc<Gate>),
}

#[derive(Debug)]
pub struct FakeTool {
    pub spec: ToolSpec,
    behaviour: Behaviour,
    working: AtomicUsize,
    begun: AtomicUsize,
    peak: AtomicUsize,
    keys: Mutex<Vec<String>>,
}

impl FakeTool {
    /// Makes a tool that takes an optional integer `ms` and an optional string `note`.
    pub fn new(name: &str, behaviour: Behaviour) -> Arc<Self> {
        Self::with_timeout(name, behaviour, None)
    }

    /// Makes a tool whose calls may be repeated.
    pub fn idempotent(name: &str, behaviour: Behaviour) -> Arc<Self> {
        let spec = Self::new(name, behaviour.clone()).spec.clone();
        let idempotent = true;
        Self::with_spec(ToolSpec { idempotent, ..spec }, behaviour)
    }

    /// Makes a tool with a timeout of its own.
    pub fn with_timeout(name: &str, behaviour: Behaviour, timeout: Option<Duration>) -> Arc<Self> {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: format!("does {name}"),
            parameters: json!({
                "type": "object",
                "properties": {"ms": {"type": "integer"}, "note": {"type": "string"}},
                "additionalProperties": false,
            }),
            idempotent: false,
            read_only: false,
            destructive: false,
            timeout,
        };
        Self::with_spec(spec, behaviour)
    }

    pub fn with_spec(spec: ToolSpec, behaviour: Behaviour) -> Arc<Self> {
        Arc::new(Self {
            spec,
            behaviour,
            working: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            keys: Mutex::default(),
        })
    }

    /// Returns how many calls have begun.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Returns the keys of the calls, in the order in which they began.
    pub fn keys(&self) -> Vec<String> {
        self.keys.lock().unwrap().clone()
    }

    /// Returns the most calls that worked at the same time.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }

    /// Returns how many calls work now.
    pub fn working(&self) -> usize {
        self.working.load(Ordering::SeqCst)
    }
}

/// Counts a call down when it ends or is dropped.
struct Working<'a>(&'a AtomicUsize);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tool for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        assert!(!matches!(self.behaviour, Behaviour::PanicAtOnce), "secret of the tool");
        Box::pin(async move {
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.keys.lock().unwrap().push(context.idempotency_key.clone());
            let working = self.working.fetch_add(1, Ordering::SeqCst) + 1;
            let _working = Working(&self.working);
            self.peak.fetch_max(working, Ordering::SeqCst);
            let done = || Ok(ToolOutput::text("done"));
            match &self.behaviour {
                Behaviour::Answer(text) => Ok(ToolOutput::text(text)),
                Behaviour::Fail(message) => Err(ToolError::new(message)),
                Behaviour::End(text) => Ok(ToolOutput::text(text).ending_run()),
                Behaviour::FailAndEnd(message) => Err(ToolError::new(message).ending_run()),
                Behaviour::EchoArguments => Ok(ToolOutput::text(arguments.to_string())),
                Behaviour::Hang => std::future::pending().await,
                Behaviour::Wait(duration) => {
                    tokio::time::sleep(*duration).await;
                    done()
                }
                Behaviour::WaitAsAsked => {
                    let millis = arguments.get("ms").and_then(Value::as_u64).unwrap();
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                    done()
                }
                Behaviour::Held(gate) => {
                    gate.pass().await;
                    done()
                }
                Behaviour::HeldBeforeWriting(gate) => {
                    gate.pass().await;
                    let edit = context.environment.edit().await.unwrap();
                    let path = FilePath::parse("a").unwrap();
                    let tree = edit.tree.with_file(&path, "text".into(), false).await.unwrap();
                    edit.finish(tree).await.unwrap();
                    done()
                }
                Behaviour::PanicAtOnce | Behaviour::PanicLater => {
                    tokio::task::yield_now().await;
                    panic!("secret of the tool")
                }
            }
        })
    }
}
