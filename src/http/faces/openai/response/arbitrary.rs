//! Random runs, and the requests for them.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::projection::ResponseSettings;
use crate::http::faces::openai::echo::{ENCRYPTED_REASONING, Echo};
use crate::http::faces::turn::arbitrary::{Plan, RUN, plans};
use crate::http::openai_settings::{OpenAiAccess, OpenAiSettings, OwnTools, Seal};

/// A run, and how its client reads it.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) run: Plan,
    pub(super) seals: bool,
    pub(super) hides_calls: bool,
}

pub(super) fn cases() -> impl Strategy<Value = Case> {
    (plans(), any::<[bool; 2]>()).prop_map(|(run, [seals, hides_calls])| Case {
        run,
        seals,
        hides_calls,
    })
}

impl Case {
    pub(super) fn new(run: Plan) -> Self {
        Self {
            run,
            seals: false,
            hides_calls: false,
        }
    }

    pub(super) fn echo(&self) -> Arc<Echo> {
        let format = if self.run.is_json { "json_object" } else { "text" };
        let answers = !self.run.answers.is_empty();
        Arc::new(Echo {
            model: "support".to_owned(),
            previous_response_id: answers.then(|| format!("resp_{}", RUN.replace('-', ""))),
            text: json!({"format": {"type": format}}),
            // No other run is taken over.
            background: self.run.takeover.is_some(),
            include: self.seals.then(|| ENCRYPTED_REASONING.to_owned()).into_iter().collect(),
            ..Echo::default()
        })
    }

    pub(super) fn settings(&self) -> ResponseSettings {
        let own_tools = if self.hides_calls {
            OwnTools::Hide
        } else {
            OwnTools::Show
        };
        ResponseSettings {
            openai: Arc::new(OpenAiSettings {
                access: OpenAiAccess {
                    own_tools,
                    ..OpenAiAccess::default()
                },
                seal: Some(Seal::new(&[7; 32]).unwrap()),
            }),
            tenant: "acme".parse().unwrap(),
        }
    }
}
