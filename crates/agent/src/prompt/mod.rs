//! System prompts as templates: values, conditions and loops over `variables` and `metadata`. An
//! undefined name is an error.
//!
//! A prompt is written by a tenant, so its cost is bounded. The guard rejects templates that could
//! build ever larger values or exhaust the stack. The rendering counts its steps, and the bytes
//! that it reads from lists and objects.

mod error;
mod guard;
mod template_values;

use std::collections::BTreeMap;
use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::StringInput;
use minijinja::{Environment, UndefinedBehavior, context, filters, tests};

pub use self::error::{MAX_PROMPT_BYTES, PromptError};
use self::guard::{Scanned, scan};
use self::template_values::{Allowance, longest_entry, object_of};
use values::json::{Object, Value};

/// The most instructions of one rendering. Real prompts need far fewer, and these take no
/// noticeable time.
const FUEL: u64 = 100_000;
/// The most instructions times bytes of the longest text, since one instruction may compare, search
/// or copy a text.
const MAX_TEXT_WORK: u64 = 256 << 20;
/// The most bytes that a rendering may read from lists and objects.
const MAX_TOUCHED: u64 = 32 << 20;

/// Returns whether a prompt contains a tag to render.
pub(super) fn is_template(prompt: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| prompt.contains(mark))
}

/// Renders a prompt. In the worst case it takes a second or two.
pub fn render_prompt(
    template: &str,
    variables: &BTreeMap<String, Value>,
    metadata: &Object,
) -> Result<String, PromptError> {
    if !is_template(template) {
        return Ok(template.to_owned());
    }
    let scanned = checked(template)?;
    let longest = longest_entry(variables)
        .max(longest_entry(metadata))
        .max(scanned.longest_text);
    let allowance = Allowance::new(MAX_TOUCHED);
    let context = context! {
        variables => object_of(variables, &allowance),
        metadata => object_of(metadata, &allowance),
    };
    let mut prompt = BoundedText(Vec::new());
    let rendered = environment().and_then(|mut environment| {
        environment.set_fuel(Some(FUEL.min(MAX_TEXT_WORK / longest.max(1) as u64)));
        let template = environment.template_from_str(template)?;
        template.render_captured_to(context, &mut prompt).map(drop)
    });
    if allowance.is_spent() {
        return Err(PromptError::new("it reads and compares too much"));
    }
    rendered.map_err(PromptError::from)?;
    String::from_utf8(prompt.0).map_err(|_| PromptError::new("the rendered prompt is no text"))
}

/// Checks before storage that a prompt is a valid template and reads only values that can be set.
pub fn check_prompt(template: &str) -> Result<(), PromptError> {
    check_length(template)?;
    if !is_template(template) {
        return Ok(());
    }
    let scanned = checked(template)?;
    environment()?.template_from_str(template)?;
    scanned.unknown.map_or(Ok(()), Err)
}

fn check_length(template: &str) -> Result<(), PromptError> {
    if template.len() > MAX_PROMPT_BYTES {
        return Err(PromptError::new(format!("it has more than {MAX_PROMPT_BYTES} bytes")));
    }
    Ok(())
}

fn checked(template: &str) -> Result<Scanned, PromptError> {
    check_length(template)?;
    scan(template)
}

/// Makes an environment with the needs of prompts only: no functions, and only filters whose output
/// is hardly larger than their input.
fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().keep_trailing_newline(true).build()?);
    // Otherwise, errors of optimised builds don't name the undefined value.
    environment.set_debug(true);
    environment.add_filter("length", filters::length);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("upper", filters::upper);
    // With characters to trim, each character of the text would be compared with all of them.
    environment.add_filter("trim", |text: StringInput<'_>| filters::trim(text, None));
    environment.add_filter("default", filters::default);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("none", tests::is_none);
    Ok(environment)
}

/// The buffer of a rendered prompt. Writing fails once the prompt is too large.
struct BoundedText(Vec<u8>);

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_PROMPT_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn render(template: &str) -> Result<String, String> {
        let cities = Value::from(vec!["Bern", "Basel"]);
        let variables = BTreeMap::from([
            ("city".to_owned(), Value::from("Bern")),
            ("cities".to_owned(), cities),
            ("long".to_owned(), Value::from("x".repeat(200_000))),
        ]);
        let metadata = Object::from_iter([
            ("tier".to_owned(), Value::from(2)),
            ("a b".to_owned(), Value::from("c")),
        ]);
        render_prompt(template, &variables, &metadata).map_err(|error| error.to_string())
    }

    #[test]
    fn prompts_read_variables_and_metadata() {
        for (template, prompt) in [
            (
                "In {{ variables.city }},\ntier {{ metadata.tier }}.\n",
                "In Bern,\ntier 2.\n",
            ),
            ("{ plain }\n", "{ plain }\n"),
            ("{{ metadata['a b'] }} {{ variables.cities[1] }}", "c Basel"),
            ("{% if metadata.tier >= 2 %}gold{% else %}tin{% endif %}", "gold"),
            (
                "{% for city in variables.cities %}{{ city | upper }};{% endfor %}",
                "BERN;BASEL;",
            ),
            ("{{ variables.tone | default('dry') }}", "dry"),
            ("{% if variables.tone is defined %}a{% endif %}{# c #}b", "b"),
            ("{{ 'a ~ b * c' }}", "a ~ b * c"),
        ] {
            assert_eq!(render(template).as_deref(), Ok(prompt), "{template}");
        }
    }

    #[test]
    fn errors_name_the_line_and_what_is_not_there() {
        for (template, message) in [
            ("a\n{{ variables.town }}", "line 2: `variables.town` is undefined"),
            ("{{ variables.a.b.c }}", "line 1: `variables.a` is undefined"),
            ("\n\n{{ nope }}", "line 3: `nope` is undefined"),
            ("{{ variables['x y'] }}", "line 1: `variables['x y']` is undefined"),
            (
                "{% for x in metadata.nope %}{% endfor %}",
                "line 1: `metadata.nope` is undefined",
            ),
            (
                "{% if metadata.nope == 2 %}{% endif %}",
                "line 1: `metadata.nope` is undefined",
            ),
            (
                "\n{{ variables.town | upper }}",
                "line 2: `variables.town` is undefined",
            ),
            ("{{ variables.city | shout }}", "line 1: filter shout is unknown"),
            ("a\n{% for x in %}", "line 2: "),
            ("a\n{{ nope", "line 2: "),
            ("a\n\n{% set s = 'x' %}", "line 3: a prompt may use "),
            ("a\n{{ 'x'\n* 2 }}", "line 3: a prompt shows values "),
        ] {
            let error = render(template).unwrap_err();
            assert!(error.contains(message), "{template:?}: {error}");
        }
        assert!(check_prompt("{{ variables.town }}").is_ok(), "a later run may have it");
        assert!(check_prompt("{{ nope").is_err());
    }

    #[test]
    fn a_template_can_not_run_without_end() {
        let cities = "{% for a in variables.cities %}".repeat(18) + "x" + &"{% endfor %}".repeat(18);
        assert!(render(&cities).is_err());
    }

    #[test]
    fn a_template_can_not_fill_the_memory() {
        let doubling = format!("{{% set s = 'x' %}}{}", "{% set s = s ~ s %}".repeat(40));
        for template in [
            doubling.as_str(),
            "{% set s %}{{ variables.long }}{% endset %}",
            "{{ variables.long ~ variables.long }}",
            "{{ variables.long + variables.long }}",
            "{{ 'x' * 1000000000 }}",
            "{{ [variables.long, variables.long] | upper }}",
            "{{ {'a': variables.long} }}",
            "{{ range(100000000) }}",
            "{% macro m() %}{% endmacro %}",
            "{% filter upper %}{% endfilter %}",
            "{% include 'x' %}",
        ] {
            assert!(
                check_prompt(template).is_err() || render(template).is_err(),
                "{template}"
            );
        }
        let many = "{{ variables.long }}".repeat(6);
        assert!(
            render(&many).unwrap_err().contains("bytes"),
            "what is written is bounded"
        );
    }
}
