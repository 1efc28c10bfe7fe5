//! No call of a tool that may not be repeated has had two effects, and what a session records as
//! done was done.

use std::collections::BTreeMap;

use super::Findings;
use super::sessions::ToolAnswer;
use crate::facts::Facts;
use crate::ledger::Effect;
use crate::replica::{CHARGE, DONE, SHELL};
use crate::request::Kind;

/// Compares the ledger with the sessions.
pub(super) fn check(facts: &[Facts], effects: &[Effect], answers: &[ToolAnswer], findings: &mut Findings) {
    let mut by_key: BTreeMap<&str, Vec<&Effect>> = BTreeMap::new();
    let mut by_part: BTreeMap<(&str, i64), u64> = BTreeMap::new();
    for effect in effects {
        by_key.entry(&effect.call_key).or_default().push(effect);
        if effect.tool == CHARGE {
            *by_part.entry((&effect.note, effect.part)).or_default() += 1;
        }
    }
    for (key, effects) in &by_key {
        let first = effects[0];
        if effects.len() > 1 && first.tool == CHARGE {
            findings.violations.push(format!(
                "{} effects of the call {key} of a tool that may not be repeated: {first:?}",
                effects.len()
            ));
        }
        if effects
            .iter()
            .any(|effect| (&effect.note, effect.part) != (&first.note, first.part))
        {
            findings
                .violations
                .push(format!("two calls have the key {key}: {effects:?}"));
        }
    }
    let is_counted = |fact: &&Facts| matches!(fact.request.kind, Kind::Works | Kind::Builds | Kind::Concludes);
    for fact in facts.iter().filter(is_counted) {
        // The script asks for each charge once, and under durability `step` no step is made twice.
        let note = fact.request.first_note();
        for ((_, part), count) in by_part.range((note.as_str(), i64::MIN)..=(note.as_str(), i64::MAX)) {
            if *count > 1 {
                findings.violation(fact, format!("part {part} was charged {count} times"));
            }
        }
    }
    let of_request: BTreeMap<u64, &Facts> = facts.iter().map(|fact| (fact.request.number, fact)).collect();
    let mut seen = BTreeMap::new();
    for answer in answers {
        let Some(fact) = of_request.get(&answer.request) else {
            continue;
        };
        let key = answer.text.strip_prefix(DONE).filter(|_| !answer.is_error);
        match key {
            Some(key) if !by_key.contains_key(key) => findings.violation(fact, format!("the call {key} had no effect")),
            Some(key) => {
                if let Some(other) = seen.insert(key, answer.request) {
                    findings.violation(fact, format!("the call {key} is answered in request {other} too"));
                }
            }
            None if answer.tool == CHARGE => findings.uncertain_calls += 1,
            None if answer.tool == SHELL && answer.is_error => findings.uncertain_calls += 1,
            None => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::MARK;
    use crate::request::Request;

    fn effect(call_key: &str, tool: &str, note: &str, part: i64) -> Effect {
        Effect {
            call_key: call_key.to_owned(),
            tool: tool.to_owned(),
            note: note.to_owned(),
            part,
        }
    }

    /// Checks one request that works, and returns what was found.
    fn found(effects: &[Effect], answers: &[(&str, bool)]) -> Findings {
        let request = Request {
            number: 1,
            kind: Kind::Works,
            thread: None,
            is_repeated: false,
        };
        let answers: Vec<ToolAnswer> = answers
            .iter()
            .map(|(text, is_error)| ToolAnswer {
                request: 1,
                tool: CHARGE.to_owned(),
                text: (*text).to_owned(),
                is_error: *is_error,
            })
            .collect();
        let mut findings = Findings::default();
        check(&[Facts::new(request)], effects, &answers, &mut findings);
        findings
    }

    #[test]
    fn a_second_effect_is_found_where_it_may_not_be() {
        let note = "request-1 works";
        let cases = [
            (vec![effect("a", CHARGE, note, 1)], 0),
            (vec![effect("a", MARK, note, 1), effect("a", MARK, note, 1)], 0),
            // By its key, and by what was asked.
            (vec![effect("a", CHARGE, note, 1), effect("a", CHARGE, note, 1)], 2),
            (vec![effect("a", CHARGE, note, 1), effect("b", CHARGE, note, 1)], 1),
            (vec![effect("a", MARK, note, 1), effect("a", MARK, note, 2)], 1),
        ];
        for (effects, violations) in cases {
            assert_eq!(found(&effects, &[]).violations.len(), violations, "{effects:?}");
        }
    }

    #[test]
    fn an_answer_without_an_effect_is_found() {
        let effects = [effect("a", CHARGE, "request-1 works", 1)];
        for (answers, violations, uncertain) in [
            (&[("done: a", false)][..], 0, 0),
            (&[("done: b", false)], 1, 0),
            (&[("done: a", false), ("done: a", false)], 1, 0),
            (&[("its effect is uncertain", true)], 0, 1),
        ] {
            let findings = found(&effects, answers);
            assert_eq!(findings.violations.len(), violations, "{answers:?}");
            assert_eq!(findings.uncertain_calls, uncertain, "{answers:?}");
        }
    }
}
