//! `summarisation`: limits a conversation to the context window of its model.
//!
//! A summary replaces older messages in requests; nothing is deleted. If no summary can be made,
//! the run continues with the messages that it has, and an event warns. The provider then decides
//! whether the request fits.

mod config;
mod cut;
mod size;
mod transcript;

use std::sync::Arc;

use futures_util::future::BoxFuture;

use self::config::SummarisationConfig;
use self::cut::{RecentPart, find_cut};
use self::size::context_tokens;
use self::transcript::{question, transcribe};
use crate::compilers::{IndexedMessage, Reading};
use crate::definition::AgentDefinition;
use crate::drivers::{AskError, Question, ask};
use crate::events::AgentEvent;
use crate::hook_point::HookPoint;
use crate::hooks::{ExecutionPorts, Hook, HookContext, HookError, HookFactory, ensure};
use crate::model_calls::{ModelChain, ModelChoice, message_tokens};
use crate::ports::{ModelCatalog, ModelErrorClass};
use crate::state::{AgentState, AgentStep, ExecutionState};
use values::ids::MessageId;
use values::json::Object;
use values::message::{Coverage, Message, Role};
use values::model_ref::{ContextWindows, ModelRef};
use values::usage::{PriceTable, Usage};

const NAME: &str = "summarisation";
/// The beginning of every summary, for the model that reads it.
const HEADER: &str = "This is a summary of the conversation up to here. It stands for messages that are left out; the newest ones follow it.";
/// The tokens of a summary if the window is unknown. Otherwise a summary has an eighth of the
/// window within bounds.
const SUMMARY_TOKENS: u64 = 4_096;
const SUMMARY_TOKENS_BOUNDS: (u64, u64) = (512, 16_384);
/// The most requests for one summary. A conversation that needs more is not summarised.
const MAX_PIECES: usize = 32;

/// Makes hooks that summarise.
#[derive(Debug)]
pub struct SummarisationFactory {
    catalog: Arc<dyn ModelCatalog>,
    prices: PriceTable,
    windows: ContextWindows,
}

impl SummarisationFactory {
    /// Makes a factory with the models that summarise, their prices, and the context windows.
    pub fn new(catalog: Arc<dyn ModelCatalog>, prices: PriceTable, windows: ContextWindows) -> Self {
        Self {
            catalog,
            prices,
            windows,
        }
    }

    /// Returns the smallest context window of the models; `None` if one is unknown.
    fn window<'a>(&self, models: impl Iterator<Item = &'a ModelRef>) -> Option<u64> {
        let windows: Option<Vec<u64>> = models.map(|model| self.windows.window(model)).collect();
        windows.and_then(|windows| windows.into_iter().min())
    }

    fn own_model(&self, model_ref: &ModelRef, ports: &ExecutionPorts) -> Result<ModelChain, String> {
        let model = self.catalog.model(model_ref).map_err(|error| error.to_string())?;
        let price = self.prices.price(model_ref);
        let is_priced = price.is_some() || !ports.control.limits_cost();
        ensure(
            is_priced,
            format!("model: no price is known for {model_ref}, so its cost can't be limited"),
        )?;
        let choice = ModelChoice {
            model_ref: model_ref.clone(),
            model,
            price,
        };
        Ok(ModelChain::new(choice, []))
    }
}

impl HookFactory for SummarisationFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, config: &Object) -> Result<(), String> {
        let config = SummarisationConfig::read(config)?;
        let model = config.model.as_ref().map(|model| self.catalog.check(model));
        model.unwrap_or(Ok(())).map_err(|error| format!("model: {error}"))
    }

    fn check_agent(&self, config: &Object, agent: &AgentDefinition) -> Result<(), String> {
        if SummarisationConfig::read(config)?.context_window.is_some() {
            return Ok(());
        }
        let unknown = agent.model_chain().find(|model| self.windows.window(model).is_none());
        unknown.map_or(Ok(()), |model| {
            Err(format!(
                "the context window of {model} is not known: give context_window here, or the model's in [context_windows] of the service's configuration"
            ))
        })
    }

    fn models(&self, config: &Object) -> Vec<ModelRef> {
        let config = SummarisationConfig::read(config).ok();
        config.and_then(|config| config.model).into_iter().collect()
    }

    fn make(&self, config: &Object, ports: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        let config = SummarisationConfig::read(config)?;
        let names = ports.models.iter().map(|choice| &choice.model_ref);
        let window = config.context_window.or_else(|| self.window(names));
        if window.is_none() {
            // A run may choose another model than its agent's.
            let model = &ports.models.preferred().model_ref;
            tracing::warn!(%model, "the context window is not known, so nothing is summarised before the provider asks for it");
        }
        let own = config.model.as_ref().map(|model| self.own_model(model, ports));
        let models = own.transpose()?.unwrap_or_else(|| ports.models.clone());
        let summariser_window = self.window(models.iter().map(|choice| &choice.model_ref)).or(window);
        Ok(Arc::new(Summarisation {
            window,
            piece_tokens: summariser_window
                .into_iter()
                .chain(window)
                .min()
                .map(|window| window / 2),
            ports: ExecutionPorts {
                models,
                ..ports.clone()
            },
            config,
        }))
    }
}

/// The hook of one execution. It decides by the state alone, so a resumed execution decides the
/// same.
#[derive(Debug)]
struct Summarisation {
    config: SummarisationConfig,
    /// The context window; `None` when it is unknown.
    window: Option<u64>,
    /// The most tokens of conversation in one request for a summary.
    piece_tokens: Option<u64>,
    ports: ExecutionPorts,
}

/// A summary that was not made.
enum SummaryError {
    /// The run continues without it.
    Warned(String),
    /// A hook around the request failed, so the run fails.
    OfHook(String),
}

impl Summarisation {
    /// Makes a summary once the conversation fills its share of the window.
    async fn before_step(&self, state: AgentState) -> Result<AgentState, HookError> {
        let Some(window) = self.window.filter(|_| !is_stopping(&state)) else {
            return Ok(state);
        };
        let reading = self.ports.compiler.read(&state);
        let size = context_tokens(&state, &reading);
        let limit = self.config.limit(window);
        if size <= limit {
            return Ok(state);
        }
        let keep = RecentPart {
            messages: self.config.keep_recent,
            tokens: limit / 2,
            // A summary of few messages would be repeated at every step.
            least_covered: size / 10,
        };
        let step_number = state.step_count() + 1;
        let (state, _) = self.compact(state, &reading, keep, step_number).await?;
        Ok(state)
    }

    /// If the provider reports that the conversation is too long, makes a summary and retries the
    /// step once.
    async fn on_error(&self, state: AgentState) -> Result<AgentState, HookError> {
        let was_tried = state.last_step().is_some_and(is_too_long);
        if was_tried || is_stopping(&state) || !state.current_step().is_some_and(is_too_long) {
            return Ok(state);
        }
        let reading = self.ports.compiler.read(&state);
        let size = context_tokens(&state, &reading).min(self.window.unwrap_or(u64::MAX));
        let keep = RecentPart {
            messages: self.config.keep_recent,
            tokens: size / 2,
            least_covered: 1,
        };
        // The step that failed is not counted yet.
        let step_number = state.step_count() + 2;
        let (state, was_made) = self.compact(state, &reading, keep, step_number).await?;
        if was_made {
            return Ok(state.with_continuation_requested(self.ports.control.now()));
        }
        Ok(state)
    }

    /// Adds a summary of the older messages; returns whether there is one.
    async fn compact(
        &self,
        state: AgentState,
        reading: &Reading,
        keep: RecentPart,
        step_number: usize,
    ) -> Result<(AgentState, bool), HookError> {
        let current = state.execution().map(|execution| execution.execution_id);
        let Some(cut) = find_cut(reading, keep, current) else {
            return Ok((state, false));
        };
        let used = state.hook_usage();
        let (state, made) = self.summarise(state, reading, cut).await;
        let usage = state.hook_usage().since(used);
        match made {
            Ok(summary) => Ok((self.with_summary(state, &summary, cut, step_number, usage), true)),
            Err(SummaryError::OfHook(message)) => Err(HookError {
                usage,
                ..HookError::new(message)
            }),
            Err(SummaryError::Warned(words)) => {
                tracing::warn!("a conversation is not summarised");
                self.ports.events.emit(AgentEvent::HookWarned {
                    step_number,
                    hook: NAME.to_owned(),
                    message: format!("the conversation is not summarised: {words}"),
                });
                Ok((state, false))
            }
        }
    }

    /// Asks for a summary of the last summary and all messages up to the cut. Asks piece by piece
    /// if they are too long for one request.
    async fn summarise(
        &self,
        state: AgentState,
        reading: &Reading,
        cut: usize,
    ) -> (AgentState, Result<String, SummaryError>) {
        let is_covered = |indexed: &&IndexedMessage| (reading.start..cut).contains(&indexed.index);
        let covered: Vec<&Message> = reading
            .messages
            .iter()
            .filter(is_covered)
            .map(|indexed| &*indexed.message)
            .collect();
        let all: u64 = covered.iter().map(|message| message_tokens(message)).sum();
        let pieces = transcribe(&covered, self.piece_tokens.unwrap_or(all / 2 + 1));
        if pieces.len() > MAX_PIECES {
            let words = format!("it takes more than {MAX_PIECES} requests");
            return (state, Err(SummaryError::Warned(words)));
        }
        let last = reading.summary.as_ref().map(|indexed| indexed.message.joined_text());
        let last = last.map(|text| text.strip_prefix(HEADER).unwrap_or(&text).trim().to_owned());
        let (mut state, mut summary) = (state, last.unwrap_or_default());
        for piece in pieces {
            let asked = Question {
                instructions: self.config.prompt.clone(),
                text: question(&summary, &piece),
                max_output_tokens: self.summary_tokens(),
            };
            let (next, answer) = ask(&self.ports, state, asked).await;
            state = next;
            summary = match answer {
                Ok(words) if words.trim().is_empty() => {
                    return (state, Err(SummaryError::Warned("the model said nothing".to_owned())));
                }
                Ok(words) => words.trim().to_owned(),
                Err(AskError::Hook(message)) => return (state, Err(SummaryError::OfHook(message))),
                Err(error) => return (state, Err(SummaryError::Warned(error.to_string()))),
            };
        }
        (state, Ok(summary))
    }

    fn with_summary(
        &self,
        state: AgentState,
        summary: &str,
        cut: usize,
        step_number: usize,
        usage: Usage,
    ) -> AgentState {
        let now = self.ports.control.now();
        let id = MessageId::generate(&*self.ports.ids);
        // Every provider accepts a user message at the beginning of a conversation.
        let message = Message::text(id, Role::User, format!("{HEADER}\n\n{summary}"), now);
        let covers = Coverage {
            from: 0,
            to: cut as u64,
        };
        self.ports.events.emit(AgentEvent::HistoryCompacted {
            step_number,
            message_id: id,
            from: covers.from,
            to: covers.to,
            usage: Box::new(usage),
        });
        state.with_summary(message, covers, now)
    }

    fn summary_tokens(&self) -> u64 {
        let (least, most) = SUMMARY_TOKENS_BOUNDS;
        self.window
            .map_or(SUMMARY_TOKENS, |window| (window / 8).clamp(least, most))
    }
}

impl Hook for Summarisation {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> &[HookPoint] {
        &[HookPoint::BeforeStep, HookPoint::OnError]
    }

    fn call(&self, context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        Box::pin(async move {
            let state = match context.point {
                HookPoint::OnError => self.on_error(context.state).await?,
                _ => self.before_step(context.state).await?,
            };
            Ok(HookContext { state, ..context })
        })
    }
}

fn is_too_long(step: &AgentStep) -> bool {
    let code = ModelErrorClass::Context.code();
    step.errors.iter().any(|error| error.code == code)
}

fn is_stopping(state: &AgentState) -> bool {
    let stops = |execution: &ExecutionState| execution.continuation.should_stop();
    state.execution().is_none_or(stops)
}
