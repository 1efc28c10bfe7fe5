//! The worst prompts that a caller can write: each is rejected, or checked and rendered within
//! bounds of stack, time and memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use agent::prompt::{check_prompt, render_prompt};
use values::json::{Object, Value};

/// Half the stack of an async worker, although test builds need several times as much as optimised
/// builds.
const SMALL_STACK: usize = 1024 * 1024;
/// The most memory that checking and rendering a prompt may use at once.
const MAX_MEMORY: u64 = 16 << 20;
/// Far more than a rendering takes: test builds are not optimised, and the machine has other load.
const LONG: Duration = Duration::from_mins(1);
/// One repetition more than any form may have.
const MAX_REPEAT: usize = 101;

fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let measured = move || {
        let mut result = None;
        let taken = allocation_counter::measure(|| result = Some(work()));
        (result.unwrap(), taken.bytes_max)
    };
    let thread = std::thread::Builder::new().stack_size(SMALL_STACK).spawn(measured);
    let (result, bytes) = thread.unwrap().join().unwrap();
    assert!(bytes < MAX_MEMORY, "{bytes} bytes");
    result
}

/// Returns templates that nest or repeat a part `repeat` times, each with a name.
fn forms(repeat: usize) -> Vec<(&'static str, String)> {
    let tag = |before: &str, part: &str, after: &str| format!("{{{{ {before}{}{after} }}}}", part.repeat(repeat));
    let nested = |open: &str, close: &str| format!("{{{{ {}1{} }}}}", open.repeat(repeat), close.repeat(repeat));
    let blocks = |open: &str, close: &str| format!("{}x{}", open.repeat(repeat), close.repeat(repeat));
    vec![
        ("minus", tag("", "- ", "1")),
        ("not", tag("", "not ", "1")),
        ("attributes", tag("variables", ".b", "")),
        ("indexes", tag("variables", "[0]", "")),
        ("slices", tag("variables.list", "[:]", "")),
        ("filters", tag("variables.text", "|upper", "")),
        ("tests", tag("variables", " is defined", "")),
        ("negated tests", tag("variables", " is not defined", "")),
        ("arguments", nested("1|default(", ")")),
        ("inline if", tag("", "1 if 1 else ", "1")),
        ("inline if without else", tag("1", " if 1", "")),
        ("and", tag("1", " and 1", "")),
        ("or", tag("1", " or 1", "")),
        ("comparisons", tag("1", " < 1", "")),
        ("containment", tag("1", " in variables", "")),
        ("differences", tag("1", " - 1", "")),
        ("quotients", tag("1", " / 1", "")),
        ("texts", tag("", "'x' ", "")),
        ("parentheses", nested("(", ")")),
        ("nested indexes", nested("variables[", "]")),
        ("if", blocks("{% if 1 %}", "{% endif %}")),
        ("for", blocks("{% for a in variables.one %}", "{% endfor %}")),
        (
            "elif",
            format!("{{% if 0 %}}{}x{{% endif %}}", "{% elif 0 %}".repeat(repeat)),
        ),
        ("else", blocks("{% if 0 %}{% else %}", "{% endif %}")),
        ("calls", tag("variables", "()", "")),
        (
            "lists",
            format!("{{{{ {}{} }}}}", "[".repeat(repeat), "]".repeat(repeat)),
        ),
        ("tags", "{{1}}".repeat(repeat)),
        ("comments", "{#x#}".repeat(repeat)),
    ]
}

fn data() -> (BTreeMap<String, Value>, Object) {
    let mut variables = BTreeMap::from([
        ("text".to_owned(), Value::from("xy".repeat(50_000))),
        ("other".to_owned(), Value::from("xy".repeat(50_000) + "z")),
        ("list".to_owned(), Value::from((0..20_000).collect::<Vec<_>>())),
        ("same".to_owned(), Value::from((0..20_000).collect::<Vec<_>>())),
    ]);
    variables.insert("texts".to_owned(), Value::from(vec!["xy".repeat(50_000)]));
    (variables, Object::new())
}

/// Checks and renders a template; returns whether it was accepted.
fn attempt(template: String) -> bool {
    on_small_stack(move || {
        let variables = BTreeMap::from([
            ("text".to_owned(), Value::from("xy")),
            ("one".to_owned(), Value::from(vec![1])),
            ("list".to_owned(), Value::from(vec![1, 2])),
        ]);
        let checked = check_prompt(&template);
        let rendered = render_prompt(&template, &variables, &Object::new());
        assert!(checked.is_ok() || rendered.is_err(), "{template}");
        checked.is_ok()
    })
}

#[test]
fn no_form_exhausts_the_stack_however_long_it_is() {
    for repeat in [1_000, 100_000] {
        for (name, template) in forms(repeat) {
            let begun = Instant::now();
            let accepted = attempt(template);
            assert!(!accepted || matches!(name, "tags" | "comments"), "{name} {repeat}");
            assert!(begun.elapsed() < LONG, "{name} {repeat}: {:?}", begun.elapsed());
        }
    }
}

#[test]
fn the_longest_form_that_is_accepted_needs_little_stack() {
    for repeat in 1..=MAX_REPEAT {
        // Each form inside the deepest nesting of blocks that accepts it.
        for (_, template) in forms(repeat) {
            attempt(template.clone());
            attempt("{% if 1 %}".repeat(49) + &template + &"{% endif %}".repeat(49));
        }
    }
    let longest = |name: &str| {
        let of = |repeat| forms(repeat).into_iter().find(|form| form.0 == name).unwrap().1;
        (1..=MAX_REPEAT)
            .filter(|repeat| attempt(of(*repeat)))
            .max()
            .unwrap_or(0)
    };
    for (name, at_least) in [
        ("and", 49),
        ("inline if", 24),
        ("if", 50),
        ("elif", 49),
        ("attributes", 49),
        ("parentheses", 8),
    ] {
        assert!(longest(name) >= at_least, "{name}: {}", longest(name));
    }
}

#[test]
fn what_stands_in_tags_is_counted_in_each_and_in_all_together() {
    // The most tokens that one tag may have.
    let tag = |more: &str| format!("{{{{ not variables{}{more} }}}}", ".a".repeat(49));
    assert!(check_prompt(&tag("")).is_ok());
    let message = |template: &str| check_prompt(template).unwrap_err().to_string();
    let words = message(&tag("."));
    assert!(words.contains("the tag has more than 100 names"), "{words}");
    let most = tag("").repeat(500);
    assert!(check_prompt(&most).is_ok());
    let words = message(&format!("{most}\n{{{{ 1 }}}}"));
    assert!(words.contains("line 2: the tags have more than 50000 names"), "{words}");
}

#[test]
fn the_deepest_value_is_shown_and_compared_on_little_stack() {
    let nested = |innermost: i32| (0..120).fold(Value::from(innermost), |value, _| Value::from(vec![value]));
    let variables = BTreeMap::from([("a".to_owned(), nested(1)), ("b".to_owned(), nested(2))]);
    let template =
        "{{ variables }}{{ variables.a < variables.b }}{{ variables.a == variables.b }}{{ variables|upper }}";
    let rendered = on_small_stack(move || render_prompt(template, &variables, &Object::new()).unwrap());
    assert!(rendered.contains("}TrueFalse{"), "{rendered}");
}

#[test]
fn what_hides_from_the_guard_is_refused() {
    let doubling = "{% set s = 'x' %}{% set s = s ~ s %}";
    for template in [
        format!("{{#}} {{{{ ' #}}{doubling}"),
        format!("{{{{ ( }}}}{doubling}"),
        format!("{{{{ 'x }}}}{doubling}"),
        format!("{{{{ 'x\\' }}}}{doubling}{{{{ ' }}}}"),
        format!("{{{{ 1if 1else 1 }}}}{doubling}"),
        "{{ ('a')(1) }}".to_owned(),
        "{{ x|upper.y }}".to_owned(),
        "{{ 1 if x in ['a'] }}".to_owned(),
        "{% if 1 %}{% endfor %}".to_owned(),
        "{{ variables.f() }}".to_owned(),
        "{{ loop.cycle(1) }}".to_owned(),
        "{{ é }}".to_owned(),
    ] {
        let (variables, metadata) = data();
        assert!(check_prompt(&template).is_err(), "{template}");
        assert!(render_prompt(&template, &variables, &metadata).is_err(), "{template}");
    }
    let raw = format!("{{%- raw %}}{doubling}{{% endraw %}}");
    let (variables, metadata) = data();
    assert_eq!(render_prompt(&raw, &variables, &metadata).unwrap(), doubling);
}

#[test]
fn work_is_bounded_by_the_bytes_that_are_touched() {
    let looped = |body: &str| format!("{{% for a in variables.list %}}{body}{{% endfor %}}");
    for template in [
        looped("{% if variables.text == variables.other %}{% endif %}"),
        looped("{% if variables.text in variables.other %}{% endif %}"),
        looped("{% if variables.list == variables.same %}{% endif %}"),
        looped("{% if variables.list < variables.same %}{% endif %}"),
        looped("{% if variables == metadata or variables < metadata %}{% endif %}"),
        looped("{% if -1 in variables.list %}{% endif %}"),
        looped("{% if variables.text[-1] == 'x' %}{% endif %}"),
        looped("{% if variables.text|upper|lower|upper == 1 %}{% endif %}"),
        looped("{% if variables.text|length == 1 %}{% endif %}"),
        "{% for t in variables.texts %}".to_owned()
            + &looped("{% if t|upper|lower == t %}{% endif %}")
            + "{% endfor %}",
        looped("{% if variables.list[1:] == 1 %}{% endif %}"),
        looped("{% if variables.text[1:] == 1 %}{% endif %}"),
        looped("{% if variables|upper == 1 %}{% endif %}"),
        looped("{% for c in variables.text %}{% endfor %}"),
        looped("{% for c in variables %}{% endfor %}"),
        looped("{{ variables }}"),
    ] {
        let begun = Instant::now();
        let template_ = template.clone();
        let rendered = on_small_stack(move || {
            let (variables, metadata) = data();
            render_prompt(&template_, &variables, &metadata).map_err(|error| error.to_string())
        });
        let words = rendered.unwrap_err();
        assert!(begun.elapsed() < LONG, "{template}: {:?}", begun.elapsed());
        let is_bound = ["too much", "too many steps", "comes to more than"];
        assert!(
            is_bound.iter().any(|bound| words.contains(bound)),
            "{template}: {words}"
        );
    }
}

#[test]
fn no_characters_to_trim_are_given() {
    let (variables, metadata) = data();
    let template = "{{ variables.text|trim(variables.text) }}";
    assert!(render_prompt(template, &variables, &metadata).is_err());
}

#[test]
fn unknown_names_are_refused_when_a_prompt_is_stored() {
    for (template, message) in [
        ("{{ nope }}", "line 1: nothing can set `nope`"),
        ("a\n{{ variable.x }}", "line 2: nothing can set `variable`"),
        ("{% if nope is defined %}{% endif %}", "nothing can set `nope`"),
        ("{{ variables[nope] }}", "nothing can set `nope`"),
        ("{% for a in variables.l %}{% endfor %}{{ a }}", "nothing can set `a`"),
        (
            "{% for a in variables.l %}{% else %}{{ a }}{% endfor %}",
            "nothing can set `a`",
        ),
        ("{{ loop.index }}", "nothing can set `loop`"),
        ("{{ self.x }}", "nothing can set `self`"),
        (
            "{{ variables.x | shout }}",
            "line 1: filter shout is unknown; known are default, ",
        ),
        ("{% if 0 %}{{ 1 is odd }}{% endif %}", "line 1: test odd is unknown"),
        ("{% if variables.x is not even %}{% endif %}", "test even is unknown"),
        ("{{ range(3) }}", "does not call them"),
    ] {
        let error = check_prompt(template).unwrap_err().to_string();
        assert!(error.contains(message), "{template}: {error}");
    }
    for template in [
        "{{ variables.nope.loop.is.not }} {{ metadata['nope'] }}",
        "{% for a in variables.l if a.b is not defined %}{{ loop.index - 1 }}: {{ a }}{% else %}{{ none }}{% endfor %}",
        "{%- if not variables.a and (variables.b or true) +%}{{- variables.c[0][:2] | default('none') -}}{% endif %}",
        "{% for a in variables %}{% for b in a %}{{ a }}{{ b }}{% endfor %}{{ a }}{% endfor %}",
        "{{ 1.5 - variables.x[-1].y.0 / 2 }} {{ \"a\\\"}}\" 'b' }} {#- }} -#} {#-#} {# {{ #}",
    ] {
        assert!(
            check_prompt(template).is_ok(),
            "{template}: {:?}",
            check_prompt(template)
        );
    }
}
