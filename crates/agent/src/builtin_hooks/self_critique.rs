//! `self_critique`: the agent's model judges a final response by criteria. A poor response is
//! retried with the critique.
//!
//! If the critic fails, is cut or can't be parsed, the response stands, and an event warns.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;

use crate::drivers::{AskError, Question, ask};
use crate::events::AgentEvent;
use crate::hook_point::HookPoint;
use crate::hooks::{ExecutionPorts, Hook, HookContext, HookError, HookFactory, ensure, read_config};
use crate::state::{AgentState, AgentStep, AgentStepType};
use values::ids::MessageId;
use values::json::{Object, Value};
use values::message::{Message, Role};

const NAME: &str = "self_critique";
/// The longest criteria, in bytes.
const MAX_CRITERIA: usize = 10_000;
/// The most tokens of a critique.
const MAX_CRITIQUE_TOKENS: u64 = 1_000;
/// Marks messages with critiques, so that the rounds can be counted.
const MARK: &str = "hook";

const INSTRUCTIONS: &str =
    "You review the answer of an assistant to a task. Judge it by these criteria and by nothing else:";
const FORM: &str = "Reply with one JSON object and nothing else. When the answer meets the criteria: {\"good\": true}. When it does not: \
    {\"good\": false, \"critique\": \"what has to change\"}.";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SelfCritiqueConfig {
    /// The criteria of a good completion, for the model.
    criteria: String,
    /// The most completions that are judged in one execution.
    #[serde(default = "one")]
    max_rounds: usize,
}

fn one() -> usize {
    1
}

impl SelfCritiqueConfig {
    fn read(config: &Object) -> Result<Self, String> {
        let config: Self = read_config(config)?;
        ensure(!config.criteria.trim().is_empty(), "criteria is empty")?;
        ensure(
            config.criteria.len() <= MAX_CRITERIA,
            format!("criteria is longer than {MAX_CRITERIA} bytes"),
        )?;
        ensure((1..=5).contains(&config.max_rounds), "max_rounds is between 1 and 5")?;
        Ok(config)
    }
}

/// Makes critics.
#[derive(Debug)]
pub(super) struct SelfCritiqueFactory;

impl HookFactory for SelfCritiqueFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, config: &Object) -> Result<(), String> {
        SelfCritiqueConfig::read(config).map(drop)
    }

    fn make(&self, config: &Object, ports: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        Ok(Arc::new(SelfCritique {
            config: SelfCritiqueConfig::read(config)?,
            ports: ports.clone(),
        }))
    }
}

#[derive(Debug)]
struct SelfCritique {
    config: SelfCritiqueConfig,
    ports: ExecutionPorts,
}

/// The verdict of the critic.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Poor(String),
}

impl SelfCritique {
    async fn review(&self, state: AgentState) -> Result<AgentState, HookError> {
        let Some(answer) = self.answer_to_judge(&state) else {
            return Ok(state);
        };
        let question = self.question(&state, &answer);
        let used = state.hook_usage();
        let (state, asked) = ask(&self.ports, state, question).await;
        let warning = match asked.map(|words| read_verdict(&words)) {
            Ok(Some(Verdict::Good)) => return Ok(state),
            Ok(Some(Verdict::Poor(critique))) => return Ok(self.sent_back(state, &critique)),
            Ok(None) => "the critic's reply is no verdict".to_owned(),
            Err(AskError::Hook(message)) => {
                return Err(HookError {
                    usage: state.hook_usage().since(used),
                    ..HookError::new(message)
                });
            }
            Err(error) => error.to_string(),
        };
        self.ports.events.emit(AgentEvent::HookWarned {
            step_number: state.step_count() + 1,
            hook: NAME.to_owned(),
            message: format!("the answer is not judged: {warning}"),
        });
        Ok(state)
    }

    /// Returns the text of a final completion if another step may follow and no other signal has
    /// decided.
    fn answer_to_judge(&self, state: &AgentState) -> Option<String> {
        let step = state.current_step().filter(|step| is_whole_answer(step))?;
        let continuation = &state.execution()?.continuation;
        let is_decided = !continuation.stop_signals.is_empty() || continuation.is_continuation_requested;
        // Without a step after it, a critique would cost money and change nothing.
        let is_spent = rounds(state) >= self.config.max_rounds || self.ports.control.is_last_step(state);
        let answer: String = step
            .output_messages
            .iter()
            .map(|message| message.joined_text())
            .collect();
        (!is_decided && !is_spent && !answer.trim().is_empty()).then_some(answer)
    }

    fn question(&self, state: &AgentState, answer: &str) -> Question {
        let criteria = &self.config.criteria;
        let mut task: Vec<String> = execution_messages(state)
            .filter(|message| message.role == Role::User && !message.tags.is_trace)
            .map(Message::joined_text)
            .collect();
        task.reverse();
        let task = task.join("\n\n");
        Question {
            instructions: format!("{INSTRUCTIONS}\n\n{criteria}\n\n{FORM}"),
            text: format!("<task>\n{task}\n</task>\n\n<answer>\n{answer}\n</answer>"),
            max_output_tokens: MAX_CRITIQUE_TOKENS,
        }
    }

    fn sent_back(&self, state: AgentState, critique: &str) -> AgentState {
        let now = self.ports.control.now();
        let text = format!(
            "Your answer was reviewed and does not meet the criteria yet: {critique}\n\nGive the whole answer again, improved."
        );
        let id = MessageId::generate(&*self.ports.ids);
        let message = Message {
            metadata: Object::from_iter([(MARK.to_owned(), Value::from(NAME))]),
            ..Message::text(id, Role::User, text, now)
        };
        state.with_trace([message], now).with_continuation_requested(now)
    }
}

impl Hook for SelfCritique {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> &[HookPoint] {
        &[HookPoint::AfterStep]
    }

    fn call(&self, context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        Box::pin(async move {
            let state = self.review(context.state).await?;
            Ok(HookContext { state, ..context })
        })
    }
}

/// Returns whether the step has a completion that the model itself ended.
fn is_whole_answer(step: &AgentStep) -> bool {
    let is_whole = step.response.is_some() && step.cut().is_none();
    is_whole && step.step_type() == AgentStepType::FinalResponse
}

/// Counts the critiques of the execution. They are counted in the state, so a resumed execution
/// continues the count.
fn rounds(state: &AgentState) -> usize {
    execution_messages(state)
        .filter(|message| message.tags.is_trace && message.metadata.get(MARK).and_then(Value::as_str) == Some(NAME))
        .count()
}

/// Iterates over the messages of the execution, newest first.
fn execution_messages(state: &AgentState) -> impl Iterator<Item = &Message> {
    let execution_id = state.execution().map(|execution| execution.execution_id);
    let newest = state.stored_messages().rev().map(AsRef::as_ref);
    newest.take_while(move |message: &&Message| message.tags.execution_id == execution_id)
}

/// Parses a verdict, even if other text surrounds it or its values are strings.
fn read_verdict(words: &str) -> Option<Verdict> {
    let json = words.get(words.find('{')?..=words.rfind('}')?)?;
    let verdict: Object = serde_json::from_str(json).ok()?;
    let is_good = match verdict.get("good")? {
        Value::Bool(good) => *good,
        Value::String(word) if ["true", "yes"].contains(&word.to_lowercase().as_str()) => true,
        Value::String(word) if ["false", "no"].contains(&word.to_lowercase().as_str()) => false,
        _ => return None,
    };
    if is_good {
        return Some(Verdict::Good);
    }
    let critique = verdict.get("critique").and_then(Value::as_str).map(str::trim);
    let critique = critique.filter(|critique| !critique.is_empty());
    Some(Verdict::Poor(
        critique.unwrap_or("the reviewer does not say why").to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read_wherever_they_stand() {
        let poor = |critique: &str| Some(Verdict::Poor(critique.to_owned()));
        for (words, verdict) in [
            (r#"{"good": true}"#, Some(Verdict::Good)),
            ("```json\n{\"good\": \"Yes\"}\n```", Some(Verdict::Good)),
            (
                r#"I think: {"good": false, "critique": " too long "} So."#,
                poor("too long"),
            ),
            (
                r#"{"good": "no", "critique": {"a": 1}}"#,
                poor("the reviewer does not say why"),
            ),
            (
                r#"{"good": false, "critique": ""}"#,
                poor("the reviewer does not say why"),
            ),
            (r#"{"good": 1}"#, None),
            (r#"{"fine": true}"#, None),
            ("} {", None),
            ("{", None),
            ("It is good.", None),
            ("", None),
        ] {
            assert_eq!(read_verdict(words), verdict, "{words}");
        }
    }
}
